package group

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/wire/command"
	"github.com/redlock-go/redlock/quorum"
)

// Sight is a node's answer about a key.
type Sight struct {
	Node  int           // its number among those of all groups
	Addr  string        // without credentials
	There bool          // there is such a key
	Value string        // its first bytes
	TTL   time.Duration // 0 if it has none
	Err   error         // why the node has not answered
}

// Inspect asks all nodes what they have at a key, and sums it up. Nothing is changed there, and values are not read
// at one moment: only what a quorum shows counts.
func (g *Group) Inspect(ctx context.Context, key string) (seen []Sight, all Summary, err error) {
	if seen, err = g.read(ctx, key); err == nil {
		all = summarize(seen, g.Members().Quorum)
	}
	return seen, all, err
}

// read asks all nodes what they have at a key, and waits for all of them. The TTL is asked for first: the lock of the
// value, seen afterwards, had this TTL, or has been extended since.
func (g *Group) read(ctx context.Context, key string) ([]Sight, error) {
	ctx = orBackground(ctx)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	value, err := g.engine.Call(engine.ReadValue, key, 0)
	if err != nil {
		return nil, err
	}
	defer g.engine.Free(value)
	ttl, err := g.engine.Call(engine.ReadTTL, key, 0)
	if err != nil {
		return nil, err
	}
	defer g.engine.Free(ttl)
	value.Watch(ctx.Done())
	ttl.Watch(ctx.Done())
	var both engine.Ops
	both.Add(&ttl.Op)
	both.Add(&value.Op)
	if err := g.engine.Begin(both); err != nil {
		return nil, err
	}
	ttl.Wait()
	value.Wait()
	if err := asked(ctx, cmp.Or(ttl.Ended(), value.Ended())); err != nil {
		return nil, err
	}
	seen := make([]Sight, g.Len())
	for i := range seen {
		seen[i].Node, seen[i].Addr = g.Number(i), g.Addr(i)
	}
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
	for _, f := range append(g.Failures(&ttl.Op), g.Failures(&value.Op)...) {
		seen[f.Node] = Sight{Node: g.Number(f.Node), Addr: g.Addr(f.Node), Err: f.Err}
	}
	return seen, nil
}

// prove returns what nodes have shown of a lock as if asked in one operation, without an error if a quorum has the
// value. ttl is then what a quorum shows at least.
func prove(seen []Sight, value string, nodes *quorum.Config) (op *engine.Op, ttl time.Duration) {
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

// shownBy is the longest TTL shown by each node of some quorum among some nodes.
func shownBy(seen []Sight, among quorum.Set, nodes *quorum.Config) time.Duration {
	order := slices.Collect(among.All())
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(seen[b].TTL, seen[a].TTL) })
	longest := quorum.Set(0)
	for _, node := range order {
		longest.Add(node)
		if nodes.IsQuorum(longest) {
			return seen[node].TTL
		}
	}
	return 0
}
