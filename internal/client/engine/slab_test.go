package engine

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/quorum"
)

func init() { slab = 1 } // the tests account for every batch

// The batches of a slab share memory, and must not grow into each other's.
func TestBatchesOfASlabAreApart(t *testing.T) {
	defer func(was int) { slab = was }(slab)
	slab = 8
	e := new(Engine)
	e.ledger.nodes, e.nodes.n, e.ledger.callbacks = &e.nodes, 3, &e.callbacks
	var all []*batch
	for range 2 * slab {
		all = append(all, e.ledger.batch())
	}
	for i, b := range all {
		b.first.Buf = append(b.first.Buf, bytes.Repeat([]byte{byte(i)}, 3*slabBytes)...)
		for range 2 * slabRounds {
			b.rounds = append(b.rounds, round{life: uint64(i)})
			b.first.spans = append(b.first.spans, span{first: i})
			b.runs = append(b.runs, run{first: i})
		}
		b.quarantined = quorum.Set(i)
		require.Len(t, b.cause, 3)
		require.Equal(t, 3, cap(b.cause))
	}
	for i, b := range all {
		require.Equal(t, bytes.Repeat([]byte{byte(i)}, 3*slabBytes), b.first.Buf)
		for j := range b.rounds {
			require.EqualValues(t, i, b.rounds[j].life)
			require.Equal(t, i, b.first.spans[j].first)
			require.Equal(t, i, b.runs[j].first)
		}
		require.EqualValues(t, i, b.quarantined)
	}
}
