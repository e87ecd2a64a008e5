package router

import (
	"strconv"
	"strings"

	"github.com/redlock-go/redlock/internal/rules/contention"
)

// number is the number of the group that a key belongs to: the one with the greatest weight for
// it (rendezvous hashing). All versions of the library must agree on it, or they do not exclude
// each other. A group that is appended takes its share evenly from the others, and no key moves
// between those.
func number(key string, seeds []uint64) (number int) {
	hash, most := contention.Hash(tag(key)), uint64(0)
	for i, seed := range seeds {
		if weight := contention.Mix(hash ^ seed); weight > most {
			number, most = i, weight
		}
	}
	return number
}

// Number is the number of the group that a key belongs to where there are so many.
func Number(key string, groups int) int { return number(key, seeds(groups)) }

// seeds is the part of each group in its weights.
func seeds(groups int) []uint64 {
	all := make([]uint64, groups)
	for i := range all {
		all[i] = contention.Hash(strconv.Itoa(i))
	}
	return all
}

// tag is the part of a key that decides on its group, as in Redis Cluster: what stands between the
// first { and the next }, unless that is nothing, or there are none. Keys with the same tag are in
// one group.
func tag(key string) string {
	if _, rest, found := strings.Cut(key, "{"); found {
		if tag, _, found := strings.Cut(rest, "}"); found && tag != "" {
			return tag
		}
	}
	return key
}
