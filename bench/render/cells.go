package render

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redlock-go/redlock/bench/result"
)

// usualKeyLen is the length of a key that is not worth a word.
const usualKeyLen = 24

// dimension is one of the things in which cells differ.
type dimension struct {
	label string                   // of an axis
	value func(result.Cell) string // on the axis
	title func(result.Cell) string // in the name of a cell; empty where it is as usual
}

var dimensions = []dimension{
	{"scenario", func(c result.Cell) string { return string(c.Scenario) }, func(c result.Cell) string { return string(c.Scenario) }},
	{"crowd", func(c result.Cell) string { return crowd(c) }, crowd},
	{"goroutines", func(c result.Cell) string { return strconv.Itoa(c.Concurrency) },
		func(c result.Cell) string { return unless(c.Crowd != "", "%s %d", many(c.Scenario), c.Concurrency) }},
	{"clients", func(c result.Cell) string { return strconv.Itoa(c.Clients) },
		func(c result.Cell) string { return unless(c.Clients == 0, "%s", count(c.Clients, "client", "clients")) }},
	{"nodes", func(c result.Cell) string { return strconv.Itoa(c.Nodes) },
		func(c result.Cell) string { return count(c.Nodes, "node", "nodes") }},
	{"round trip added", func(c result.Cell) string { return c.RTT.String() },
		func(c result.Cell) string { return unless(c.RTT == 0, "round trip +%v", c.RTT) }},
	{"jitter", func(c result.Cell) string { return unless(c.RTT > 0, "%v", c.Jitter) }, // goes with the fault or the round trip
		func(c result.Cell) string { return unless(c.Jitter == 0, "jitter %v", c.Jitter) }},
	{"fault", func(c result.Cell) string { return fault(c.Fault) },
		func(c result.Cell) string {
			return unless(c.Fault == result.NoFault, cmp.Or(unless(c.Fault.OfClients(), "node 1 "), "")+"%s", fault(c.Fault))
		}},
	{"bytes of a key", func(c result.Cell) string { return strconv.Itoa(c.KeyLen) },
		func(c result.Cell) string { return unless(c.KeyLen == usualKeyLen, "keys of %d bytes", c.KeyLen) }},
	{"GOMAXPROCS", func(c result.Cell) string { return strconv.Itoa(c.Procs) },
		func(c result.Cell) string { return unless(c.Procs == 0, "GOMAXPROCS %d", c.Procs) }},
	{"processes", func(c result.Cell) string { return strconv.Itoa(c.Processes) },
		func(c result.Cell) string {
			return unless(c.Processes == 0 || c.Crowd != "", "%s", count(c.Processes, "process", "processes"))
		}},
	{"keys", func(c result.Cell) string { return strconv.Itoa(c.Keys) },
		func(c result.Cell) string { return unless(c.Keys <= 1 || c.Crowd != "", "%d keys", c.Keys) }},
	{"hold", func(c result.Cell) string { return c.Hold.String() },
		func(c result.Cell) string { return unless(c.Hold == 0, "hold %v", c.Hold) }},
	{"pairs asked for in a second", func(c result.Cell) string { return strconv.Itoa(c.Rate) },
		func(c result.Cell) string { return unless(c.Rate == 0, "%d pairs/s asked for", c.Rate) }},
	{"turns", func(c result.Cell) string { return strconv.FormatBool(c.Once) },
		func(c result.Cell) string { return unless(!c.Once, "one turn each") }},
	{"TTL", func(c result.Cell) string { return c.TTL.String() },
		func(c result.Cell) string { return unless(!c.Fault.OfClients(), "TTL %v", c.TTL) }},
}

// many names what there are so many of.
func many(s result.Scenario) string {
	if s.OfMany() {
		return "number"
	}
	return "concurrency"
}

// crowd names a crowd and those beside it.
func crowd(c result.Cell) string {
	return c.Crowd + unless(c.Beside == "", " beside %s", c.Beside)
}

func unless(usual bool, format string, args ...any) string {
	if usual {
		return ""
	}
	return fmt.Sprintf(format, args...)
}

func count(n int, one, several string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprint(n, " ", several)
}

// fault names the state of the first node, or what is done to clients.
func fault(f result.Fault) string {
	switch f {
	case result.NoFault:
		return "healthy"
	case result.Slow:
		return "slow (+20ms)"
	}
	return string(f)
}

// Title names a cell.
func Title(c result.Cell) string {
	var parts []string
	for _, d := range dimensions {
		if text := d.title(c); text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, ", ")
}

// varied are the dimensions in which groups differ.
func varied(groups []*result.Group) (all []dimension) {
	for _, d := range dimensions {
		if slices.ContainsFunc(groups, func(g *result.Group) bool { return d.value(g.Cell) != d.value(groups[0].Cell) }) {
			all = append(all, d)
		}
	}
	return all
}

// axes names what the groups differ in, and the place of each.
func axes(groups []*result.Group) (axis string, labels []string) {
	labels = make([]string, len(groups))
	var names []string
	for _, d := range varied(groups) {
		names = append(names, d.label)
		for i, g := range groups {
			if labels[i] != "" {
				labels[i] += " / "
			}
			labels[i] += d.value(g.Cell)
		}
	}
	if len(names) == 0 {
		labels[0] = Title(groups[0].Cell)
	}
	return strings.Join(names, " and "), labels
}

// byScenario splits groups, so that a table has only columns that are alike.
func byScenario(groups []*result.Group) (all [][]*result.Group) {
	for _, g := range groups {
		i := slices.IndexFunc(all, func(other []*result.Group) bool { return other[0].Scenario == g.Scenario })
		if i < 0 {
			i, all = len(all), append(all, nil)
		}
		all[i] = append(all[i], g)
	}
	return all
}
