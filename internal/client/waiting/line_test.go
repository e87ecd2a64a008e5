package waiting

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/client/engine"
)

// TestLine is compared with a list, over random changes.
func TestLine(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var l line
	var want, outside []*Waiter
	for range 20 {
		outside = append(outside, new(Waiter))
	}
	for range 20_000 {
		if random.IntN(2) == 0 && len(want) > 0 {
			i := random.IntN(len(want))
			w := want[i]
			want = slices.Delete(want, i, i+1)
			l.remove(w)
			require.Nil(t, w.line)
			outside = append(outside, w)
		} else if len(outside) > 0 {
			l.push(outside[0])
			want, outside = append(want, outside[0]), outside[1:]
		}
		var have []*Waiter
		for w := l.first; w != nil; w = w.next {
			require.Same(t, &l, w.line)
			have = append(have, w)
		}
		require.Equal(t, len(want), l.len)
		require.True(t, slices.Equal(want, have))
	}
}

// testLines returns lines whose three nodes can push.
func testLines() *Lines {
	retry, _ := Retry{}.Check()
	l := New(Config{Env: engine.Env{Clock: clock.New(), Nodes: []string{"a", "b", "c"}, Ring: func() {}}, Retry: retry})
	l.tracking.usable.Swap(7)
	return l
}

// TestLineIsKept while it is busy or known, also empty.
func TestLineIsKept(t *testing.T) {
	l := testLines()
	w := l.Join("a", new(engine.Call), Ended{}, nil)
	s, kept := l.lock("a"), w.line
	defer s.mu.Unlock()
	kept.held, kept.passes, kept.busy, kept.known = clock.Instant(time.Second), 3, true, 1
	kept.remove(w)
	l.settle(s, kept)
	require.Same(t, kept, s.lines["a"], "a waiter acts for it")
	kept.busy, kept.known = false, clock.Never
	l.settle(s, kept)
	require.Same(t, kept, s.lines["a"], "known")
	kept.known = 1
	l.settle(s, kept)
	require.Empty(t, s.lines)
	require.False(t, l.Known())
}

// TestYoungestGrant: it alone is passed on. A grant that was on its way at that moment does not stand while the lock
// that was passed on is in use; an older one than that never does.
func TestYoungestGrant(t *testing.T) {
	l := testLines()
	older, old := engine.Serial(), engine.Serial()
	require.True(t, l.Granted("a", old))
	w := l.Join("a", new(engine.Call), Ended{}, nil)
	line, now := w.line, l.cfg.Clock.Now()
	require.Nil(t, line.mayPass(older, now))
	require.Same(t, w, line.mayPass(old, now))
	w.rests = false
	require.Nil(t, line.mayPass(old, now), "to one that does not rest")
	w.rests = true
	onItsWay := engine.Serial()
	line.passed(w, now, now.Add(time.Minute))
	require.False(t, l.Granted("a", onItsWay))
	sent := engine.Serial()
	require.True(t, l.Granted("a", sent))
	require.Nil(t, line.mayPass(old, now))
	line.freed(old, now)
	require.NotZero(t, line.held, "a younger one may be held")
	line.freed(sent, now)
	require.Zero(t, line.held)
	require.False(t, l.Granted("a", onItsWay), "past")
	require.Nil(t, line.mayPass(old, now))
	l.Doubt("a")
	next := l.Join("a", new(engine.Call), Ended{}, nil)
	require.Nil(t, line.mayPass(sent, now))
	require.True(t, l.Granted("a", engine.Serial()))
	require.Same(t, next, line.mayPass(line.youngest, now))
}
