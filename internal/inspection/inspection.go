// Package inspection reads what each node has at a key, and sums it up: for users that look at a
// lock, and as the proof of a lock that was acquired elsewhere.
//
// A [Sight] is the answer of one node. [Read] asks all nodes; [Summarize] finds the value that
// most of them have, and [Prove] whether that is a given one. Nothing is changed at the nodes,
// and values are not read at one moment: only what a quorum shows counts. A summary has
// digests of values, and does not print the one that a quorum has.
package inspection

import (
	"cmp"
	"context"
	"math/bits"
	"slices"
	"time"

	"github.com/redlock-go/redlock/internal/command"
	"github.com/redlock-go/redlock/internal/engine"
	"github.com/redlock-go/redlock/quorum"
)

// Sight is what a node has answered about a key.
type Sight struct {
	Node  int           // its number among those of all groups
	Addr  string        // without credentials
	There bool          // there is such a key
	Value string        // its first bytes
	TTL   time.Duration // 0 if it has none
	Err   error         // why the node has not answered
}

// Read asks all nodes what they have at a key, and waits for all of them. The TTL is
// asked for first: the lock with the value that is seen after that had this TTL, or
// has been extended since. failures returns those of an operation, in full.
func Read(ctx context.Context, e *engine.Engine, nodes int, key string, failures func(*engine.Op) []engine.Failure) ([]Sight, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	value, err := e.Call(engine.ReadValue, key, 0)
	if err != nil {
		return nil, err
	}
	defer e.Free(value)
	ttl, err := e.Call(engine.ReadTTL, key, 0)
	if err != nil {
		return nil, err
	}
	defer e.Free(ttl)
	value.Watch(ctx)
	ttl.Watch(ctx)
	if err := e.DoAll(ctx, []*engine.Call{ttl, value}); err != nil {
		return nil, err
	}
	seen := make([]Sight, nodes)
	for _, v := range ttl.Values {
		if s := &seen[v.Node]; v.Int > 0 || v.Int == command.NoTTL {
			s.There, s.TTL = true, max(0, time.Duration(v.Int)*time.Millisecond)
		}
	}
	for _, v := range value.Values {
		if s := &seen[v.Node]; s.There {
			s.Value = v.Text
		}
	}
	for _, f := range append(failures(&ttl.Op), failures(&value.Op)...) {
		seen[f.Node] = Sight{Err: f.Err}
	}
	return seen, nil
}

// Prove returns what nodes have shown of a lock as if that had been asked in one operation: it has
// no error if a quorum has the value. ttl is then what a quorum shows at least.
func Prove(seen []Sight, value string, nodes *quorum.Config) (op *engine.Op, ttl time.Duration) {
	op = &engine.Op{}
	op.Tally.Reset(nodes)
	for node, s := range seen {
		switch {
		case s.Err != nil:
			op.Tally.Record(node, quorum.Failed)
			op.Failures = append(op.Failures, engine.Failure{Node: node, Err: s.Err})
		case s.Value == value && s.TTL > 0: // a value without a TTL is no lock's
			op.Tally.Record(node, quorum.Granted)
		default:
			op.Tally.Record(node, quorum.Denied)
		}
	}
	switch {
	case op.Tally.Verdict() == quorum.Won:
		ttl = shownBy(seen, op.Tally.Nodes(quorum.Granted), nodes)
	case nodes.Blocks(op.Tally.Nodes(quorum.Denied)):
		op.Err = engine.ErrNotHeld
	default:
		op.Err = engine.ErrNoQuorum
	}
	return op, ttl
}

// shownBy is the longest TTL that each node of a quorum among some nodes shows.
func shownBy(seen []Sight, among uint64, nodes *quorum.Config) time.Duration {
	var order []int
	for ; among != 0; among &= among - 1 {
		order = append(order, bits.TrailingZeros64(among))
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(seen[b].TTL, seen[a].TTL) })
	longest := uint64(0)
	for _, node := range order {
		if longest |= 1 << uint(node); nodes.IsQuorum(longest) {
			return seen[node].TTL
		}
	}
	return 0
}
