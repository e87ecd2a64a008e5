package renewal_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/test/testkit"
)

// TestRepair: with late messages, broken connections and restarted nodes, no two clients hold the
// lock, and no lock is extended after another client has held it meanwhile.
func TestRepair(t *testing.T) {
	oneGoroutine(t)
	worlds := map[string]world{
		"extends":                           {extends: 2},
		"a restart, a break, SETs are late": {extends: 1, restarts: 1, breaks: 1, lateSets: true},
	}
	if testkit.Long() {
		worlds["extends, SETs are late"] = world{extends: 2, lateSets: true}
		worlds["extends, a break"] = world{extends: 2, breaks: 1}
		worlds["extends, a restart"] = world{extends: 2, restarts: 1}
		worlds["two restarts"] = world{extends: 1, restarts: 2, lateSets: true}
	}
	for name, w := range worlds {
		t.Run(name, func(t *testing.T) {
			states, broken, trace := w.search()
			t.Log(states, "states")
			require.Empty(t, broken, "%s", trace)
		})
	}
}

// TestBrokenRepair: each rule is needed.
func TestBrokenRepair(t *testing.T) {
	oneGoroutine(t)
	const twice, late, behind = "two hold the lock", "a lock is extended that another client has held meanwhile", "a key was set behind its release"
	for name, c := range map[string]struct {
		world
		broken string
	}{
		"an extend may win late":                      {world{rules: rules{late: true}, extends: 2, breaks: 1}, late},
		"an extend may win late, SETs are late":       {world{rules: rules{late: true}, extends: 1, lateSets: true}, late},
		"a copy counts in the extend that has set it": {world{rules: rules{atOnce: true}, extends: 1, restarts: 1, lateSets: true}, twice},
		"repair behind the release":                   {world{rules: rules{released: true}, extends: 1, breaks: 1}, behind},
		"repair overwrites":                           {world{rules: rules{overwrite: true}, extends: 2, breaks: 1}, twice},
	} {
		t.Run(name, func(t *testing.T) {
			states, broken, trace := c.search()
			t.Log(states, "states,", len(trace)-1, "steps")
			require.Equal(t, c.broken, broken)
		})
	}
}

// oneGoroutine skips a search where it is slow and shows nothing more.
func oneGoroutine(t *testing.T) {
	if t.Parallel(); testkit.Race {
		t.Skip("one goroutine has no races")
	}
}

// search looks at all states, the nearest first. It returns their number, or the way to the first
// broken one.
func (w *world) search() (states int, broken string, trace []string) {
	first := state{until: ttl}
	for i := range first.node {
		if n := &first.node[i]; i < majority || !w.lateSets {
			n.put(1, ttl, false)
		} else {
			n.push(queue, inLine, set)
		}
	}
	seen := map[state]struct{}{first: {}}
	all, from := []state{first}, []int32{-1}
	for at := 0; at < len(all) && broken == ""; at++ {
		w.steps(all[at], func(next state, why string) {
			if !w.settle(&next) && why == "" {
				return
			}
			if _, again := seen[next]; again || broken != "" {
				return
			}
			seen[next] = struct{}{}
			all, from = append(all, next), append(from, int32(at))
			broken = why
		})
	}
	if broken != "" {
		for at := len(all) - 1; at >= 0; at = int(from[at]) {
			trace = append(trace, all[at].String())
		}
		slices.Reverse(trace)
	}
	return len(all), broken, trace
}

func (s state) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "holder %d released %v extends %d open %v reaches %d won %b", s.until, s.released, s.extends, s.open, s.reaches, s.won)
	for _, o := range s.other {
		fmt.Fprintf(&b, "; other %d %d", o.phase, o.left)
	}
	for _, n := range s.node {
		fmt.Fprintf(&b, "\n  key %d for %d, quarantine %d, queue %v, of others %v, answers %v, mute %b", n[value], n[left], n[quarantine],
			n[queue:queue+inLine], n[orders:answers], n[answers:mute], n[mute])
	}
	return b.String()
}
