package redlock

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/redlock-go/redlock/internal/group"
	"github.com/redlock-go/redlock/internal/token"
	"github.com/redlock-go/redlock/quorum"
)

// KeyState is what all nodes have at a key.
type KeyState struct {
	Key     string
	Verdict Verdict
	// Holder is the text that the holder's Config.Holder has set, or "", and Digest a
	// short hash of its value, which tells holders apart. Both are of the value that most
	// nodes have.
	Holder, Digest string
	Nodes          []KeyOnNode // in the order of Config.Nodes

	sum string // SHA-256 of that value, which itself could release the lock
}

// KeyOnNode is what a node has at a key.
type KeyOnNode struct {
	Node           int    // its index in Config.Nodes
	Addr           string // without credentials
	Holder, Digest string // as in KeyState; "" if there is no key
	TTL            time.Duration
	NoTTL          bool  // there is a key, and it does not expire
	Err            error // why the node has told nothing
}

// Verdict is what the nodes together say of a key. Its String is a few words.
type Verdict uint8

// The verdicts.
const (
	KeyUnknown Verdict = iota // too few nodes answered
	KeyFree                   // a quorum of nodes has no such key
	KeyHeld                   // a quorum of nodes has the same value
	// KeySplit: several values, none with a quorum: attempts under way, or what was left
	// behind, until it expires.
	KeySplit
	// KeyEternal: a quorum of nodes has a value that does not expire, as SETNX leaves it.
	// No lock does that; only a person can mend it.
	KeyEternal
)

func (v Verdict) String() string {
	return [...]string{"unknown", "free", "held", "split", "held without a TTL"}[v]
}

// IsHeldBy says whether the lock is the one that holds the key.
func (s KeyState) IsHeldBy(l Lock) bool {
	value := l.handle.Value()
	return value != "" && (s.Verdict == KeyHeld || s.Verdict == KeyEternal) && s.sum == sumOf(value)
}

func sumOf(value string) string {
	sum := sha256.Sum256([]byte(value))
	return string(sum[:])
}

// Inspect asks each node what it has at key, and waits for all of them, for NodeTimeout
// at most; it changes nothing. Value and TTL are not read in one moment. The error is
// that of ctx, ErrBusy, ErrClosed or that of a wrong key; what is wrong with a node is in
// its KeyOnNode. It needs the commands GETRANGE and PTTL among the privileges of its user;
// without them only Inspect and Attach fail. A value that is no string is such an error.
func (c *Client) Inspect(ctx context.Context, key string) (KeyState, error) {
	seen, err := c.group.Inspect(ctx, key)
	if err != nil {
		return KeyState{}, err
	}
	s := KeyState{Key: key, Nodes: make([]KeyOnNode, len(seen))}
	var free, failed int
	var most *values
	found := map[string]*values{}
	for i, n := range seen {
		s.Nodes[i] = KeyOnNode{Node: i, Addr: c.group.Addr(i), TTL: n.TTL, NoTTL: n.There && n.TTL == 0, Err: n.Err}
		switch {
		case n.Err != nil:
			failed++
			continue
		case !n.There:
			free++
			continue
		}
		s.Nodes[i].Holder, s.Nodes[i].Digest = show(n.Value)
		v := found[n.Value]
		if v == nil {
			v = &values{text: n.Value}
			found[n.Value] = v
		}
		if v.nodes++; s.Nodes[i].NoTTL {
			v.eternal++
		}
		if most == nil || v.nodes > most.nodes {
			most = v
		}
	}
	if most != nil {
		s.Holder, s.Digest = show(most.text)
		s.sum = sumOf(most.text)
	}
	s.Verdict = verdictOf(len(seen), failed, free, most)
	return s, nil
}

// values is how many nodes have one value, and have it without a TTL.
type values struct {
	text           string
	nodes, eternal int
}

// verdictOf judges n nodes, of which some failed, and some have no key. most is the value
// that most of the others have, or nil.
func verdictOf(n, failed, free int, most *values) Verdict {
	need := quorum.Size(n)
	switch {
	case most != nil && most.eternal >= need:
		return KeyEternal
	case most != nil && most.nodes >= need:
		return KeyHeld
	case free >= need:
		return KeyFree
	case failed > quorum.Tolerates(n):
		return KeyUnknown
	}
	return KeySplit
}

// show is what may be shown of a value: what follows the token, and a digest.
func show(value string) (holder, digest string) {
	digest = group.Digest([]byte(value))
	if len(value) <= token.Size || !strings.HasPrefix(value[token.Size:], group.HolderMark) {
		return "", digest // all of it may be another library's token
	}
	holder = value[token.Size+len(group.HolderMark):]
	for _, r := range holder {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return "", digest
		}
	}
	return holder, digest
}

// Format implements fmt.Formatter: what is printed is what has a name.
func (s KeyState) Format(f fmt.State, verb rune) {
	type plain KeyState // has no Format
	s.sum = ""
	fmt.Fprintf(f, fmt.FormatString(f, verb), plain(s))
}
