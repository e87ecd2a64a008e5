package quorum_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/quorum"
)

func ExampleSet() {
	up := quorum.First(5)
	up.Remove(1)
	fmt.Println(up.Len(), up.Has(1), up.Least(), slices.Collect(up.All()))
	fmt.Println(quorum.Majority(quorum.First(5)).IsQuorum(up &^ quorum.Only(4)))
	// Output:
	// 4 false 0 [0 2 3 4]
	// true
}

// TestSharedSet: the one that has changed the set is told so.
func TestSharedSet(t *testing.T) {
	var s quorum.SharedSet
	require.True(t, s.Add(63))
	require.False(t, s.Add(63))
	require.True(t, s.Add(0))
	require.True(t, s.Has(0))
	require.False(t, s.Has(1))
	require.True(t, s.Remove(0))
	require.False(t, s.Remove(0))
	require.Equal(t, quorum.Only(63), s.Swap(quorum.Only(2)))
	require.Equal(t, quorum.Only(2), s.Load())
	for node := range quorum.Everything.All() {
		if node == 3 {
			break // the rest is not asked for
		}
	}
	require.Equal(t, quorum.MaxNodes, quorum.Set(0).Least())
}
