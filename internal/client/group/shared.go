package group

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/resp"
)

// mostShown is how many holders of a shared lock a node shows.
const mostShown = 256

// Holders is the holders of a shared lock.
type Holders struct {
	Count int
	some  []string // values of those with the longest TTLs
}

func (s Holders) has(value string) bool { return slices.Contains(s.some, value) }

// Names returns the names of the holders shown, each once.
func (s Holders) Names() (names []string) {
	for _, value := range s.some {
		if name, _ := show(value); name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// readHolders reads the answer to AppendHolders: their number, and a line for each of some, with its TTL and its value.
func (n *Sight) readHolders(q *engine.Query) error {
	if q.Err != nil {
		return q.Err
	}
	said := &q.Said[0]
	switch {
	case said.Err != nil:
		return said.Err
	case said.Kind != resp.Bulk:
		return engine.ErrMisfit
	}
	count, lines, _ := strings.Cut(said.Text, "\n")
	n.Held.Count, _ = strconv.Atoi(count)
	for line := range strings.SplitSeq(lines, "\n") {
		left, value, _ := strings.Cut(line, " ")
		ms, err := strconv.ParseInt(left, 10, 64)
		if err != nil {
			continue // it has no holder, or one with a strange value
		}
		n.TTL = max(n.TTL, time.Duration(ms)*time.Millisecond)
		n.Held.some = append(n.Held.some, value)
	}
	n.There = n.Held.Count > 0
	return nil
}
