package workload

import (
	"maps"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/bench/network/history"
)

// TestRegister: all processes have one register. It refuses what is below the largest token of a key, and tells the keys of all
// tasks apart.
func TestRegister(t *testing.T) {
	path := filepath.Join(t.TempDir(), "register")
	a, err := OpenRegister(path)
	require.NoError(t, err)
	b, err := OpenRegister(path)
	require.NoError(t, err)
	assert.True(t, a.Write("k", 4) && b.Write("k", 4) && a.Write("k", 5) && b.Write("l", 1))
	assert.False(t, b.Write("k", 4))

	places := map[uint32]string{}
	for client := 1; client <= 4; client++ {
		w := &worker{process: &process{Plan: Plan{Client: client}}, rng: rand.New(rand.NewPCG(1, 2))}
		for _, tasks := range []map[string]task{common, more} {
			for task := range maps.Values(tasks) {
				for range 50 {
					for _, key := range task.keys(w) {
						if other, ok := places[place(key)]; !history.IsPrivate(key) {
							assert.True(t, !ok || other == key, "%s and %s", key, other)
							places[place(key)] = key
						}
					}
				}
			}
		}
	}
}
