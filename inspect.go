package redlock

import (
	"context"
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

	value string
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
	return s.value != "" && (s.Verdict == KeyHeld || s.Verdict == KeyEternal) && s.value == l.Token()
}

// Inspect asks each node what it has at key, and waits for all of them, for NodeTimeout
// at most; it changes nothing. Value and TTL are not read in one moment. The error is
// that of ctx, ErrBusy, ErrClosed or that of a wrong key; what is wrong with a node is in
// its KeyOnNode. It needs the commands GETRANGE and PTTL among the privileges of its user;
// without them only Inspect and Attach fail.
func (c *Client) Inspect(ctx context.Context, key string) (KeyState, error) {
	seen, err := c.group.Inspect(ctx, key)
	if err != nil {
		return KeyState{}, err
	}
	s := KeyState{Key: key, Nodes: make([]KeyOnNode, len(seen))}
	count, eternal, failed := map[string]int{}, map[string]int{}, 0
	for i, n := range seen {
		s.Nodes[i] = KeyOnNode{Node: i, Addr: c.group.Addr(i), TTL: n.TTL, NoTTL: n.Value != "" && n.TTL == 0, Err: n.Err}
		s.Nodes[i].Holder, s.Nodes[i].Digest = show(n.Value)
		switch {
		case n.Err != nil:
			failed++
			continue
		case s.Nodes[i].NoTTL:
			eternal[n.Value]++
		}
		if count[n.Value]++; n.Value != "" && count[n.Value] > count[s.value] || s.value == "" {
			s.value = n.Value
		}
	}
	s.Holder, s.Digest = show(s.value)
	s.Verdict = verdictOf(len(seen), failed, count[""], count[s.value], eternal[s.value], s.value)
	return s, nil
}

// verdictOf judges n nodes, of which some failed, some have no key, and most of the
// others have one value, some of them without a TTL.
func verdictOf(n, failed, free, most, eternal int, value string) Verdict {
	need := quorum.Size(n)
	switch {
	case value != "" && eternal >= need:
		return KeyEternal
	case value != "" && most >= need:
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
	if value == "" {
		return "", ""
	}
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

// Format implements fmt.Formatter: no verb shows the value.
func (s KeyState) Format(f fmt.State, verb rune) {
	type plain KeyState // has no Format
	s.value = ""
	fmt.Fprintf(f, fmt.FormatString(f, verb), plain(s))
}
