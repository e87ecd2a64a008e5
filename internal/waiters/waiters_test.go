package waiters_test

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/waiters"
)

// TestLines is compared with lists, over random changes.
func TestLines(t *testing.T) {
	type waiter = waiters.Waiter[int]
	random := rand.New(rand.NewPCG(1, 2))
	var table waiters.Table[int]
	lines := map[string][]*waiter{}
	var outside []*waiter
	for i := range 20 {
		outside = append(outside, &waiter{Owner: i})
	}
	for range 20_000 {
		key := strconv.Itoa(random.IntN(4))
		if line := lines[key]; random.IntN(2) == 0 && len(line) > 0 {
			i := random.IntN(len(line))
			w := line[i]
			line = slices.Delete(slices.Clone(line), i, i+1)
			var first *waiter
			if i == 0 && len(line) > 0 {
				first = line[0]
			}
			require.Same(t, first, table.Leave(w))
			require.Nil(t, table.Leave(w), "twice")
			lines[key], outside = line, append(outside, w)
			if l := table.Find(key); len(line) == 0 {
				require.True(t, table.Settle(l, time.Second))
			} else {
				require.False(t, table.Settle(l, time.Second))
			}
		} else if len(outside) > 0 {
			w := outside[0]
			outside = outside[1:]
			l, isNew := table.Join(key, w)
			require.Equal(t, len(line) == 0, isNew)
			require.Same(t, l, w.Line())
			lines[key] = append(line, w)
		}
		for key, line := range lines {
			l := table.Line([]byte(key))
			if len(line) == 0 {
				require.Nil(t, l)
				continue
			}
			require.Equal(t, len(line), l.Len())
			require.Equal(t, key, l.Key())
			for i, w := range line {
				require.Same(t, l, w.Line())
				require.Equal(t, i == 0, w.IsFirst())
			}
		}
	}
}

// TestLineIsKept while it is busy or known, also empty, and is as new afterwards.
func TestLineIsKept(t *testing.T) {
	var table waiters.Table[int]
	var w waiters.Waiter[int]
	l, _ := table.Join("a", &w)
	l.Until, l.Passes, l.Busy, l.Known = time.Second, 3, true, time.Second
	table.Leave(&w)
	require.False(t, table.Settle(l, time.Second), "a waiter acts for it")
	l.Busy = false
	require.False(t, table.Settle(l, time.Second-1), "known")
	require.Equal(t, 1, table.Len())
	require.True(t, table.Settle(l, time.Second))
	require.Zero(t, table.Len())
	l, _ = table.Join("b", &w)
	require.Zero(t, l.Until+l.Known)
	require.False(t, l.Busy)
	require.Zero(t, l.Passes)
}
