package engine

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func init() { slab = 1 } // the tests account for every batch

// TestBatchesOfASlabAreApart: they share memory, and what nodes answer to each is its own.
func TestBatchesOfASlabAreApart(t *testing.T) {
	defer func(was int) { slab = was }(slab)
	slab = 8
	e := new(Engine)
	e.ledger.nodes, e.nodes.n, e.ledger.callbacks = &e.nodes, 3, &e.callbacks
	var all []*batch
	for i := range 2 * slab {
		b := e.ledger.batch()
		all = append(all, b)
		for node := range b.open {
			b.open[node], b.cause[node] = uint16(i), fmt.Errorf("%d", i)
		}
	}
	for i, b := range all {
		for node, n := range b.open {
			require.EqualValues(t, i, n)
			require.EqualError(t, b.cause[node], fmt.Sprint(i))
		}
	}
}
