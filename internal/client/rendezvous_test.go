package client

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestShares: each group has its even share of the keys, and a group that is appended takes its
// share from all others alike. No other key moves.
func TestShares(t *testing.T) {
	const keys = 100_000
	for _, groups := range []int{2, 5, 9} {
		before, after := seeds(groups-1), seeds(groups)
		has, took := make([]int, groups), make([]int, groups)
		for i := range keys {
			key := fmt.Sprint("orders:", i)
			from, to := number(key, before), number(key, after)
			has[to]++
			if from != to {
				require.Equal(t, groups-1, to)
				took[from]++
			}
		}
		share := float64(keys) / float64(groups)
		for i, n := range has {
			require.InEpsilon(t, share, n, 0.03, "group %d of %d", i, groups)
		}
		for i, n := range took[:groups-1] {
			require.InEpsilon(t, share/float64(groups-1), n, 0.08, "from group %d to %d", i, groups-1)
		}
	}
}

// TestNumbersStay: clients of all versions have the same group for a key.
func TestNumbersStay(t *testing.T) {
	var numbers []int
	for _, key := range []string{"a", "b", "orders:42", "user:{7}:cart", "{7}", "7", "", "\x00\xff"} {
		numbers = append(numbers, Number(key, 64))
	}
	require.Equal(t, []int{21, 33, 22, 55, 55, 55, 17, 35}, numbers)
}

// TestTag as Redis Cluster has it.
func TestTag(t *testing.T) {
	for key, want := range map[string]string{
		"plain": "plain", "{user}:a": "user", "a{user}b{other}": "user", "{}a": "{}a", "a{}{b}": "a{}{b}",
		"a{{b}}": "{b", "a{b": "a{b", "a}b{c": "a}b{c", "a}{c}": "c", "": "",
	} {
		require.Equal(t, want, tag(key), key)
	}
}
