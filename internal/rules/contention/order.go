package contention

import "github.com/redlock-go/redlock/quorum"

// Each lock has its own order of the nodes, from hashes of its key and of their names (rendezvous hashing). It is the
// same in all processes with the same names, in any order.

// Rank is the number of nodes before all nodes of a set.
func Rank(key string, names []uint64, set quorum.Set) (rank int) {
	hash, least := Hash(key), uint64(0)
	for node := range set.All() {
		least = max(least, Mix(hash^names[node]))
	}
	for _, name := range names {
		if Mix(hash^name) > least {
			rank++
		}
	}
	return rank
}

// Hash is the same in all processes, unlike the hashes of package maphash.
func Hash(text string) uint64 {
	h := uint64(14695981039346656037) // FNV-1a
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * 1099511628211
	}
	return Mix(h)
}

// Mix spreads a difference of any bit over all bits.
func Mix(h uint64) uint64 {
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}
