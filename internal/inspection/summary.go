package inspection

import (
	"strings"
	"unicode"

	"github.com/redlock-go/redlock/internal/texts"
	"github.com/redlock-go/redlock/internal/token"
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
)

func (s Status) String() string {
	return [...]string{"unknown", "free", "held", "split", "held without a TTL"}[s]
}

// Summary is what the nodes together have at a key. Holder and Digest are of the value that most
// nodes have.
type Summary struct {
	Status         Status
	Holder, Digest string
	Value          Value // that a quorum has
}

// Value is a value that can release a lock, or the zero Value. It is behind a pointer to a string,
// which package fmt does not follow.
type Value struct{ text *string }

// Show returns the value, or "".
func (v Value) Show() string {
	if v.text == nil {
		return ""
	}
	return *v.text
}

// count is how many nodes have one value, and have it without a TTL.
type count struct{ nodes, eternal int }

// Summarize counts what Read has seen.
func Summarize(seen []Sight) (s Summary) {
	var absent, failed int
	var most *Sight
	counts := map[string]count{}
	for i := range seen {
		n := &seen[i]
		switch {
		case n.Err != nil:
			failed++
			continue
		case !n.There:
			absent++
			continue
		}
		c := counts[n.Value]
		if c.nodes++; n.TTL == 0 {
			c.eternal++
		}
		counts[n.Value] = c
		if most == nil || c.nodes > counts[most.Value].nodes {
			most = n
		}
	}
	var c count
	if most != nil {
		c = counts[most.Value]
		s.Holder, s.Digest = most.Holder()
	}
	switch need := quorum.Size(len(seen)); {
	case c.eternal >= need:
		s.Status, s.Value = eternal, Value{&most.Value}
	case c.nodes >= need:
		s.Status, s.Value = heldBy, Value{&most.Value}
	case absent >= need:
		s.Status = free
	case failed > len(seen)-need:
		s.Status = unknown
	default:
		s.Status = split
	}
	return s
}

// Holder is what may be shown of the value: the name that follows the token, and a digest.
func (n *Sight) Holder() (name, digest string) {
	if !n.There {
		return "", ""
	}
	digest = texts.Digest([]byte(n.Value))
	if len(n.Value) <= token.Size || !strings.HasPrefix(n.Value[token.Size:], token.NameMark) {
		return "", digest // all of it may be another library's token
	}
	name = n.Value[token.Size+len(token.NameMark):]
	for _, r := range name {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return "", digest
		}
	}
	return name, digest
}
