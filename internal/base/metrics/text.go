package metrics

import (
	"strconv"
	"strings"
	"time"
)

// text is the output so far.
type text struct {
	b    []byte
	name string // of the samples' family
}

func count(n uint64) string { return strconv.FormatUint(n, 10) }
func gauge(n int) string    { return strconv.Itoa(n) }

// seconds is the unit of every time.
func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'g', -1, 64) }

func (t *text) family(name, kind, help string) {
	t.b = append(t.b, "# HELP "+name+" "+help+"\n# TYPE "+name+" "+kind+"\n"...)
	t.name = name
}

// one is a family of one sample.
func (t *text) one(name, kind, help, value string) {
	t.family(name, kind, help)
	t.sample(value)
}

var escaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// sample writes a value with its labels: names and values by turns.
func (t *text) sample(value string, labels ...string) {
	t.b = append(t.b, t.name...)
	for i := 0; i < len(labels); i += 2 {
		t.b = append(t.b, ",{"[b2i(i == 0)])
		t.b = append(t.b, labels[i]+`="`+escaper.Replace(labels[i+1])+`"`...)
	}
	if len(labels) > 0 {
		t.b = append(t.b, '}')
	}
	t.b = append(t.b, " "+value+"\n"...)
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// histogram writes cumulative buckets.
func (t *text) histogram(name, help string, h Histogram) {
	t.family(name, "histogram", help)
	t.name = name + "_bucket"
	sum := uint64(0)
	for i, bound := range Bounds {
		sum += h.Counts[i]
		t.sample(count(sum), "le", seconds(bound))
	}
	sum += h.Counts[len(Bounds)]
	t.sample(count(sum), "le", "+Inf")
	t.name = name + "_sum"
	t.sample(seconds(h.Sum))
	t.name = name + "_count"
	t.sample(count(sum))
}

// groupLabel is the number of a group. A plain "group" is often one of a user's own targets.
const groupLabel = "redlock_group"

// nodes writes a sample for each node in each family.
func (t *text) nodes(nodes []Node) {
	for _, f := range []struct {
		name, kind, help string
		value            func(n Node) string
	}{
		{"redlock_node_up", "gauge", "1 if the node has a connection.", func(n Node) string { return gauge(b2i(n.Up)) }},
		{"redlock_node_may_vote", "gauge", "1 if the node has a vote in locks, by restarts and fencing.", func(n Node) string { return gauge(b2i(n.NoVote == nil)) }},
		{"redlock_node_quarantine_seconds", "gauge", "How long the node still has no vote at least, where that is known.", func(n Node) string { return seconds(n.NoVoteFor) }},
		{"redlock_node_connects_total", "counter", "Connections that the node has had.", func(n Node) string { return count(n.Connects) }},
		{"redlock_node_round_trips_total", "counter", "Batches that the node has answered in full.", func(n Node) string { return count(n.RoundTrips) }},
		{"redlock_node_round_trip_seconds", "gauge", "How long such a batch takes, smoothed.", func(n Node) string { return seconds(n.RoundTrip) }},
		{"redlock_node_replies_owed", "gauge", "Replies that the node owes.", func(n Node) string { return gauge(n.InFlight) }},
	} {
		t.family(f.name, f.kind, f.help)
		for _, n := range nodes {
			t.sample(f.value(n), "node", n.Addr, groupLabel, gauge(n.Group))
		}
	}
	t.family("redlock_node_votes_total", "counter", "Votes of the node; failed ones include those of a node that is down or late.")
	for _, n := range nodes {
		t.sample(count(n.Granted), "node", n.Addr, groupLabel, gauge(n.Group), "vote", "granted")
		t.sample(count(n.Denied), "node", n.Addr, groupLabel, gauge(n.Group), "vote", "denied")
		t.sample(count(n.Failed), "node", n.Addr, groupLabel, gauge(n.Group), "vote", "failed")
	}
	t.family("redlock_node_info", "gauge", "1, with the product and version of the node, and the commands that it is asked with.")
	for _, n := range nodes {
		t.sample("1", "dialect", n.Dialect, "node", n.Addr, groupLabel, gauge(n.Group), "server", n.Server)
	}
}
