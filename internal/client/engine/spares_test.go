package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/base/clock"
)

// TestSpares: a burst's memory is kept while it is used, and goes five to ten seconds later, but for a slab. No more is
// kept than the bound. Spares hold no operation.
func TestSpares(t *testing.T) {
	e := newScripted(t, 3).engine
	e.lock.Lock()
	defer e.lock.Unlock()
	free := &e.ledger.free
	var op Op
	burst := func(batches, bytes int) {
		var all []*batch
		for range batches {
			b := e.ledger.batch()
			b.first.Buf = append(b.first.Buf, make([]byte, bytes)...)
			for range min(bytes/40, 100) {
				b.rounds = append(b.rounds, round{op: &op})
			}
			all = append(all, b)
		}
		for _, b := range all {
			free.push(b)
		}
	}
	at := clock.Instant(time.Second)
	require.Equal(t, clock.Never, free.trim(at), "nothing is kept, and no tick is due")
	burst(200, 4000)
	require.Greater(t, free.kept, 200*4000)
	require.Equal(t, at.Add(trimPause), free.trim(at))
	require.Equal(t, at.Add(trimPause), free.trim(at.Add(trimPause-1)))
	at = at.Add(trimPause)
	free.trim(at)
	require.Greater(t, free.kept, 200*4000, "all were used in this time")
	burst(10, 4000)
	at = at.Add(trimPause)
	free.trim(at)
	require.Greater(t, free.kept, 10*4000, "some were used")
	require.Less(t, free.kept, 20*(4000+100*400))
	require.Len(t, free.all, leastKept)
	at = at.Add(trimPause)
	require.Equal(t, clock.Never, free.trim(at))
	require.Zero(t, free.kept)
	for _, b := range free.all {
		require.Equal(t, cap(b.own.rounds[:]), cap(b.rounds))
		for _, r := range b.own.rounds {
			require.Nil(t, r.op)
		}
	}

	burst(100, 1<<20)
	e.ledger.batch()
	require.LessOrEqual(t, free.kept, mostKept)
}
