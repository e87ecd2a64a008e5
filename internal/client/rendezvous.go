package client

import (
	"strconv"
	"strings"

	"github.com/redlock-go/redlock/internal/rules/contention"
)

// number is the number of a key's group: the one with the greatest weight for the key (rendezvous hashing). All
// versions of the library must agree on it, or they do not exclude each other. An appended group takes its share
// evenly from the others, and no key moves between these.
func number(key string, seeds []uint64) (number int) {
	hash, most := contention.Hash(tag(key)), uint64(0)
	for i, seed := range seeds {
		if weight := contention.Mix(hash ^ seed); weight > most {
			number, most = i, weight
		}
	}
	return number
}

// Number is the number of a key's group among so many.
func Number(key string, groups int) int { return number(key, seeds(groups)) }

// seeds is the part of each group in its weights.
func seeds(groups int) []uint64 {
	all := make([]uint64, groups)
	for i := range all {
		all[i] = contention.Hash(strconv.Itoa(i))
	}
	return all
}

// tag decides on the group of a key, as in Redis Cluster: it is the part between the first { and the next }, or the
// whole key if there is none or it is empty. Keys with the same tag are in one group.
func tag(key string) string {
	if _, rest, found := strings.Cut(key, "{"); found {
		if tag, _, found := strings.Cut(rest, "}"); found && tag != "" {
			return tag
		}
	}
	return key
}
