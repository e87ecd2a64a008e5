package harness

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strings"
)

const (
	// keysPerWorker bounds the set through which a worker cycles: enough that
	// a slow node's late replies are never about the key in use, few enough to
	// stay in the cache.
	keysPerWorker = 64

	// MinKeyLen is the shortest length at which all keys can differ.
	MinKeyLen = 16
	// MaxConcurrency follows from the four digits that a key has for a worker.
	MaxConcurrency = 0xffff
)

// keys builds the keys of a cell ahead, so that the measured loop builds none.
// Each cell has a prefix of its own: what an earlier one left behind, because
// it was interrupted, must not refuse a lock to this one.
func keys(scenario Scenario, workers, length int) [][]string {
	var seed [3]byte
	_, _ = rand.Read(seed[:]) // never fails
	cell := hex.EncodeToString(seed[:])
	all := make([][]string, workers)
	if scenario == Hot {
		hot := []string{pad(cell+":hot:", length)}
		for w := range all {
			all[w] = hot
		}
		return all
	}
	for w := range all {
		all[w] = make([]string, keysPerWorker)
		for i := range all[w] {
			all[w][i] = pad(fmt.Sprintf("%s:%04x:%02x:", cell, w, i), length)
		}
	}
	return all
}

// pad lengthens key to length bytes.
func pad(key string, length int) string {
	return key + strings.Repeat("k", max(length-len(key), 0))
}
