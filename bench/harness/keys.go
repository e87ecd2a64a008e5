package harness

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"strings"
)

const (
	// keysPerWorker bounds the set through which a worker cycles: enough that
	// a slow node's late replies are never about the key in use, few enough to
	// stay in the cache.
	keysPerWorker = 64

	// MinKeyLen is the shortest length at which all keys can differ: six bytes
	// in base64.
	MinKeyLen = 8
	// DefaultKeyLen is that of a usual name.
	DefaultKeyLen = 24
	// MaxKeyLen bounds -keylen; real keys are far shorter.
	MaxKeyLen = 4 << 10
	// MaxConcurrency follows from the 16 bits that a key has for a worker.
	MaxConcurrency = 0xffff
	// maxMany is the most of what there is much of.
	maxMany = MaxConcurrency * keysPerWorker
	// maxShared is the most keys of a contended cell, maxProcesses the most processes.
	maxShared, maxProcesses = 1000, 256
	// MaxMasters is the most that a client of this module takes.
	MaxMasters = 32
)

// keys builds the keys of a cell ahead, so that the measured loop builds none.
// Each cell has its own prefix: keys of an earlier cell that was interrupted must not refuse a
// lock to this one.
func keys(workers, length int) [][]string {
	var cell [3]byte
	_, _ = rand.Read(cell[:]) // never fails
	all := make([][]string, workers)
	for w := range all {
		all[w] = make([]string, keysPerWorker)
		for i := range all[w] {
			all[w][i] = key(cell, w, i, length)
		}
	}
	return all
}

// key is three bytes for the cell, two for the worker and one for its turn, in base64, padded to
// the length.
func key(cell [3]byte, worker, turn, length int) string {
	raw := append(binary.BigEndian.AppendUint16(cell[:], uint16(worker)), byte(turn))
	short := base64.RawURLEncoding.EncodeToString(raw)
	return short + strings.Repeat("k", max(length-len(short), 0))
}
