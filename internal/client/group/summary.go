package group

import (
	"strings"
	"time"
	"unicode"

	"github.com/redlock-go/redlock/internal/base/opaque"
	"github.com/redlock-go/redlock/internal/client/texts"
	"github.com/redlock-go/redlock/internal/wire/token"
	"github.com/redlock-go/redlock/quorum"
)

// Status sums up what the nodes have at a key.
type Status uint8

// The statuses, in the order of the root package's.
const (
	unknown Status = iota
	free
	heldBy
	split
	eternal
	sharedBy
)

func (s Status) String() string {
	return [...]string{"unknown", "free", "held", "split", "held without a TTL", "shared"}[s]
}

// Summary is what the nodes together have at a key. Holder and Digest are of the value on a quorum, else on most nodes.
type Summary struct {
	Status         Status
	Holder, Digest string
	Value          Value         // of a quorum
	TTL            time.Duration // shown by a quorum at least; of a shared lock, its longest
	Held           Holders       // of a shared lock: as many holders as a quorum shows at least, and all names
}

// Value is a value able to release a lock, or the zero Value.
type Value struct{ text opaque.Ref[string] }

// Show returns the value, or "".
func (v Value) Show() string {
	if text := v.text.Get(); text != nil {
		return *text
	}
	return ""
}

// count holds the nodes with one value, and among them those without a TTL.
type count struct{ nodes, eternal quorum.Set }

// summarize counts what read has seen.
func summarize(seen []Sight, nodes *quorum.Config) (s Summary) {
	var absent, failed, shared quorum.Set
	var most *Sight
	counts := map[string]count{}
	for i := range seen {
		n, bit := &seen[i], quorum.Only(i)
		switch {
		case n.Err != nil:
			failed |= bit
			continue
		case !n.There:
			absent |= bit
			continue
		case n.Held.Count > 0:
			shared |= bit
			continue
		}
		c := counts[n.Value]
		c.nodes |= bit
		if n.TTL == 0 {
			c.eternal |= bit
		}
		counts[n.Value] = c
		if most == nil || nodes.IsQuorum(c.nodes) || !nodes.IsQuorum(counts[most.Value].nodes) && c.nodes.Len() > counts[most.Value].nodes.Len() {
			most = n
		}
	}
	var c count
	if most != nil {
		c = counts[most.Value]
		s.Holder, s.Digest = most.Holder()
	}
	switch {
	case nodes.IsQuorum(c.eternal):
		s.Status, s.Value = eternal, Value{opaque.To(&most.Value)}
	case nodes.IsQuorum(c.nodes):
		s.Status, s.Value, s.TTL = heldBy, Value{opaque.To(&most.Value)}, shownBy(seen, c.nodes, nodes)
	case nodes.IsQuorum(shared):
		s.Status, s.TTL, s.Held = sharedBy, shownBy(seen, shared, nodes), holders(seen, shared, nodes)
		s.Holder, s.Digest = "", ""
	case nodes.IsQuorum(absent):
		s.Status = free
	case nodes.Blocks(failed):
		s.Status = unknown
	default:
		s.Status = split
	}
	return s
}

// holders is as many holders of a shared lock as a quorum of some nodes shows at least, and all shown by them.
func holders(seen []Sight, among quorum.Set, nodes *quorum.Config) (all Holders) {
	all.Count = leastOf(among, nodes, func(node int) int { return seen[node].Held.Count })
	for node := range among.All() {
		all.some = append(all.some, seen[node].Held.some...)
	}
	return all
}

// Both is the summary of a key locked in two groups of nodes.
func Both(a, b Summary) Summary {
	if a.Status == b.Status && a.Value.Show() == b.Value.Show() {
		a.TTL = min(a.TTL, b.TTL)
		a.Held.Count, a.Held.some = min(a.Held.Count, b.Held.Count), append(a.Held.some, b.Held.some...)
		return a
	}
	s := Summary{Status: split, Holder: a.Holder, Digest: a.Digest}
	if s.Digest == "" {
		s.Holder, s.Digest = b.Holder, b.Digest
	}
	if a.Status == unknown || b.Status == unknown {
		s.Status = unknown
	}
	return s
}

// Holder is what may be shown of the value: the name behind the token, and a digest.
func (n *Sight) Holder() (name, digest string) {
	if !n.There || n.Held.Count > 0 {
		return "", ""
	}
	return show(n.Value)
}

func show(value string) (name, digest string) {
	digest = texts.Digest([]byte(value))
	switch {
	case len(value) <= token.Size: // all of it may be another library's token
	case strings.HasPrefix(value[token.Size:], token.NameMark):
		name = value[token.Size+len(token.NameMark):]
	default:
		name = token.HolderIn(value)
	}
	for _, r := range name {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return "", digest
		}
	}
	return name, digest
}
