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
		} else if len(outside) > 0 {
			w := outside[0]
			outside = outside[1:]
			require.Equal(t, len(line) == 0, table.Join(key, w))
			lines[key] = append(line, w)
		}
		for key, line := range lines {
			if len(line) == 0 {
				require.Nil(t, table.First(key))
				continue
			}
			require.Same(t, line[0], table.First(key))
			for i, w := range line {
				waits, first := w.Waits()
				require.True(t, waits)
				require.Equal(t, i == 0, first)
			}
		}
	}
}

// TestUntil belongs to the line, and is forgotten with it.
func TestUntil(t *testing.T) {
	var table waiters.Table[int]
	var a, b waiters.Waiter[int]
	table.SetUntil("key", time.Hour)
	table.Join("key", &a)
	require.Zero(t, a.Until())
	table.SetUntil("key", time.Second)
	table.Join("key", &b)
	require.Equal(t, time.Second, b.Until())
	table.Leave(&a)
	require.Zero(t, a.Until())
	require.Equal(t, time.Second, b.Until())
	table.Leave(&b)
	table.Join("key", &a)
	require.Zero(t, a.Until())
}

// TestAllocatesNothing in steady state.
func TestAllocatesNothing(t *testing.T) {
	var table waiters.Table[int]
	var a, b waiters.Waiter[int]
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		table.Join("key", &a)
		table.Join("key", &b)
		table.Leave(&a)
		table.Leave(&b)
	}))
}
