package sharing_test

import (
	"hash/maphash"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/test/testkit"
)

// search visits all states breadth first, up to the first that breaks an invariant. It returns the number of states
// seen, and the events leading there on one of the shortest ways. Names of nodes and actors change on the way.
func (w world) search() (states int, trace []string, fails string) {
	type found struct {
		by   event
		from int32
	}
	seed, seen, ways := maphash.MakeSeed(), map[uint64]struct{}{}, []found{{from: -1}}
	level, first := []state{{}}, int32(0)
	for len(level) > 0 && w.fails == "" {
		var next []state
		for i := range level {
			w.steps(&level[i], func(s *state, e event) {
				w.check(s, &level[i], e)
				w.canonical(s)
				h := maphash.Comparable(seed, *s)
				if _, is := seen[h]; is && w.fails == "" {
					return
				}
				seen[h] = struct{}{}
				next = append(next, *s)
				ways = append(ways, found{e, first + int32(i)})
			})
		}
		first += int32(len(level))
		level = next
	}
	if w.fails != "" {
		for at := int32(len(ways) - 1); at > 0; at = ways[at].from {
			trace = append(trace, ways[at].by.String())
		}
		slices.Reverse(trace)
	}
	return len(seen), trace, w.fails
}

// TestProtocol: no order of events breaks an invariant.
func TestProtocol(t *testing.T) {
	worlds := map[string]world{
		"two TTLs": {nodes: 3, readers: 1, writers: 1, mixed: true},
		"restart":  {nodes: 3, readers: 1, writers: 1, losses: 1},
		"extends":  {nodes: 3, readers: 1, writers: 1, extends: 1},
	}
	if testkit.Long() {
		worlds = map[string]world{
			"readers of two TTLs and a writer": {nodes: 3, readers: 2, writers: 1, mixed: true},
			"two of each":                      {nodes: 3, readers: 2, writers: 2},
			"restarts":                         {nodes: 3, readers: 2, writers: 1, losses: 2},
			"extends and restarts":             {nodes: 3, readers: 1, writers: 1, extends: 1, losses: 2},
			"extends and an operator":          {nodes: 3, readers: 1, writers: 1, extends: 1, breaks: true},
			"five nodes":                       {nodes: 5, readers: 2, writers: 1},
			"two lists":                        {nodes: 5, readers: 1, writers: 1, joint: true, losses: 1},
		}
	}
	for name, w := range worlds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			states, trace, fails := w.search()
			require.Empty(t, fails, strings.Join(trace, "\n"))
			t.Log(states, "states")
		})
	}
}

// TestBroken: without one of the rules, some order of events breaks an invariant.
func TestBroken(t *testing.T) {
	for name, c := range map[string]struct {
		world
		want string
	}{
		"no quarantine":                     {world{nodes: 3, readers: 1, writers: 1, losses: 1, lacks: quarantine}, "two hold"},
		"extends add what is missing":       {world{nodes: 3, readers: 1, writers: 1, extends: 1, breaks: true, lacks: confirmedRepairs}, "goes on"},
		"an extend counts late":             {world{nodes: 3, readers: 1, writers: 1, extends: 1, lacks: extendsInTime}, "goes on"},
		"a release deletes the key":         {world{nodes: 3, readers: 2, writers: 1, lacks: oneRelease}, "another's"},
		"a release leaves the key's end":    {world{nodes: 3, readers: 2, writers: 1, mixed: true, lacks: keysEndEarlier}, "different times"},
		"the key has the newcomer's end":    {world{nodes: 3, readers: 2, writers: 1, mixed: true, lacks: keysEndWithTheLast}, "different times"},
		"members are dropped by any clock":  {world{nodes: 3, readers: 2, writers: 1, lacks: serverClocks}, "another's"},
		"a quorum of one of two lists does": {world{nodes: 5, readers: 1, writers: 1, joint: true, lacks: bothLists}, "two hold"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			states, trace, fails := c.search()
			require.Contains(t, fails, c.want)
			t.Log(states, "states,", len(trace), "steps:", fails)
		})
	}
}
