package router

import (
	"strconv"
	"strings"

	"github.com/redlock-go/redlock/internal/contention"
)

// number is the number of the group that a key belongs to: the one with the greatest weight for
// it (rendezvous hashing). All versions of the library must agree on it, or they do not exclude
// each other. A group that is appended takes its share evenly from the others, and no key moves
// between those.
func (r *Router) number(key string) (number int) {
	hash, most := contention.Hash(tag(key)), uint64(0)
	for i, seed := range r.seeds {
		if weight := contention.Mix(hash ^ seed); weight > most {
			number, most = i, weight
		}
	}
	return number
}

// seed is the part of a group in its weights.
func seed(number int) uint64 { return contention.Hash(strconv.Itoa(number)) }

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
