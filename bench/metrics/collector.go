// Package metrics shows the counts of a client to Prometheus and to OpenTelemetry. It is meant to be
// copied: a program that has one of these libraries already needs nothing else. Without them
// redlock's Stats.WriteMetrics writes the same series by itself.
//
// grafana.json is a dashboard of them, which ../results/dashboard.svg shows; ../pictures draws that.
package metrics

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/redlock-go/redlock"
)

// Collector is a [prometheus.Collector] of one client. It reads the client's Stats when it is
// scraped, and costs nothing in between.
type Collector struct {
	client *redlock.Client
	descs  map[string]*prometheus.Desc
}

// families are the series by name, with what they mean and their labels.
var families = []struct {
	name, help string
	labels     []string
}{
	{"redlock_operations_total", "Attempts to acquire, extensions and releases that have ended, by how they ended.", []string{"kind", "result"}},
	{"redlock_acquire_duration_seconds", "Time from the call to the verdict, of attempts to acquire one key that the nodes decided.", nil},
	{"redlock_waits_total", "Calls that waited for a lock after their first attempt, by how the wait ended.", []string{"end"}},
	{"redlock_wait_duration_seconds", "Time that these calls took in all.", nil},
	{"redlock_locks_held", "Locks with validity left.", nil},
	{"redlock_locks_kept_alive", "Locks that are extended in the background.", nil},
	{"redlock_locks_lost_total", "Locks that were lost while they were kept alive.", nil},
	{"redlock_locks_handed_over_total", "Locks that passed to the next caller of the process without a release.", nil},
	{"redlock_callers_in_line", "Callers that wait for a lock.", nil},
	{"redlock_cleanups_total", "Releases that followed acquires that failed.", nil},
	{"redlock_batches_total", "Batches written, each to all nodes.", nil},
	{"redlock_batch_operations_total", "Operations in these batches.", nil},
	{"redlock_operations_waiting", "Operations that are queued in the process.", nil},
	{"redlock_operations_in_flight", "Operations sent and without a verdict.", nil},
	{"redlock_ready", "1 if a quorum of the group's nodes is up and may vote: locks can be acquired.", []string{"redlock_group"}},
	{"redlock_node_up", "1 if the node has a connection.", []string{"node", "redlock_group"}},
	{"redlock_node_may_vote", "1 if the node has a vote in locks, by restarts and fencing.", []string{"node", "redlock_group"}},
	{"redlock_node_quarantine_seconds", "How long the node still has no vote at least, where that is known.", []string{"node", "redlock_group"}},
	{"redlock_node_connects_total", "Connections that the node has had.", []string{"node", "redlock_group"}},
	{"redlock_node_round_trips_total", "Batches that the node has answered in full.", []string{"node", "redlock_group"}},
	{"redlock_node_round_trip_seconds", "How long such a batch takes, smoothed.", []string{"node", "redlock_group"}},
	{"redlock_node_replies_owed", "Replies that the node owes.", []string{"node", "redlock_group"}},
	{"redlock_node_votes_total", "Votes of the node; failed ones include those of a node that is down or late.", []string{"node", "redlock_group", "vote"}},
	{"redlock_node_info", "1, with the product and version of the node, and the commands that it is asked with.", []string{"node", "redlock_group", "server", "dialect"}},
}

// NewCollector returns a collector of client. A program with several clients gives each its label:
// prometheus.WrapRegistererWith(prometheus.Labels{"client": name}, registry).
func NewCollector(client *redlock.Client) *Collector {
	c := &Collector{client, map[string]*prometheus.Desc{}}
	for _, f := range families {
		c.descs[f.name] = prometheus.NewDesc(f.name, f.help, f.labels, nil)
	}
	return c
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(out chan<- *prometheus.Desc) {
	for _, desc := range c.descs {
		out <- desc
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	send := func(kind prometheus.ValueType, name string, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(c.descs[name], kind, value, labels...)
	}
	count := func(name string, n uint64, labels ...string) {
		send(prometheus.CounterValue, name, float64(n), labels...)
	}
	gauge := func(name string, value float64, labels ...string) {
		send(prometheus.GaugeValue, name, value, labels...)
	}
	histogram := func(name string, counts []uint64, sum time.Duration) {
		n, buckets := uint64(0), map[float64]uint64{}
		for i, bound := range redlock.TimeBounds {
			n += counts[i]
			buckets[bound.Seconds()] = n
		}
		n += counts[len(counts)-1]
		out <- prometheus.MustNewConstHistogram(c.descs[name], n, sum.Seconds(), buckets)
	}

	s := c.client.Stats()
	for _, op := range results(s) {
		count("redlock_operations_total", op.n, op.kind, op.result)
	}
	histogram("redlock_acquire_duration_seconds", s.AcquireTimes.Counts[:], s.AcquireTimes.Sum)
	for _, w := range waits(s) {
		count("redlock_waits_total", w.n, w.result)
	}
	histogram("redlock_wait_duration_seconds", s.WaitTimes.Counts[:], s.WaitTimes.Sum)
	gauge("redlock_locks_held", float64(s.Held))
	gauge("redlock_locks_kept_alive", float64(s.KeptAlive))
	count("redlock_locks_lost_total", s.Lost)
	count("redlock_locks_handed_over_total", s.HandedOver)
	gauge("redlock_callers_in_line", float64(s.InLine))
	count("redlock_cleanups_total", s.Cleanups)
	count("redlock_batches_total", s.Batches)
	count("redlock_batch_operations_total", s.Operations)
	gauge("redlock_operations_waiting", float64(s.Waiting))
	gauge("redlock_operations_in_flight", float64(s.InFlight))
	for i, n := range s.Nodes {
		group := strconv.Itoa(n.Group)
		if i == 0 || s.Nodes[i-1].Group != n.Group {
			gauge("redlock_ready", one(n.GroupReady), group)
		}
		gauge("redlock_node_up", one(n.Up), n.Addr, group)
		gauge("redlock_node_may_vote", one(n.NoVote == nil), n.Addr, group)
		gauge("redlock_node_quarantine_seconds", n.NoVoteFor.Seconds(), n.Addr, group)
		count("redlock_node_connects_total", n.Connects, n.Addr, group)
		count("redlock_node_round_trips_total", n.RoundTrips, n.Addr, group)
		gauge("redlock_node_round_trip_seconds", n.RoundTrip.Seconds(), n.Addr, group)
		gauge("redlock_node_replies_owed", float64(n.InFlight), n.Addr, group)
		count("redlock_node_votes_total", n.Granted, n.Addr, group, "granted")
		count("redlock_node_votes_total", n.Denied, n.Addr, group, "denied")
		count("redlock_node_votes_total", n.Failed, n.Addr, group, "failed")
		gauge("redlock_node_info", 1, n.Addr, group, n.Server, n.Dialect)
	}
}

// one is 1 for true.
func one(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// counted is a count with the labels of its series.
type counted struct {
	kind, result string
	n            uint64
}

func results(s redlock.Stats) (all []counted) {
	for _, of := range []struct {
		kind string
		r    struct{ Won, Denied, NoQuorum, Expired, Cancelled, Refused uint64 }
	}{{"acquire", s.Acquire}, {"extend", s.Extend}, {"release", s.Release}} {
		all = append(all,
			counted{of.kind, "won", of.r.Won}, counted{of.kind, "denied", of.r.Denied}, counted{of.kind, "no_quorum", of.r.NoQuorum},
			counted{of.kind, "expired", of.r.Expired}, counted{of.kind, "cancelled", of.r.Cancelled}, counted{of.kind, "refused", of.r.Refused})
	}
	return all
}

func waits(s redlock.Stats) []counted {
	return []counted{
		{"", "granted", s.Waits.Granted}, {"", "handed_over", s.Waits.HandedOver}, {"", "gave_up", s.Waits.GaveUp},
		{"", "used_up", s.Waits.UsedUp}, {"", "closed", s.Waits.Closed}, {"", "failed", s.Waits.Failed},
	}
}
