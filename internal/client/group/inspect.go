package group

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/wire/command"
	"github.com/redlock-go/redlock/quorum"
	"github.com/redlock-go/redlock/resp"
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

// read asks all nodes what they have at a key, and waits for all of them.
func (g *Group) read(ctx context.Context, key string) ([]Sight, error) {
	if err := cmp.Or(ctx.Err(), g.engine.CheckKey([]byte(key))); err != nil {
		return nil, err
	}
	seen, err := g.ask(ctx.Done(), key, cmp.Or(g.cfg.Engine.Timeout, defaultQueryTimeout))
	if err == context.Canceled {
		err = cmp.Or(ctx.Err(), err)
	}
	return seen, err
}

// ask is read of a right key, for a caller whose context is known by its Done channel.
func (g *Group) ask(done <-chan struct{}, key string, timeout time.Duration) ([]Sight, error) {
	failed := engine.Op{Timeout: timeout}
	questions, seen := make([]*engine.Query, g.Len()), make([]Sight, g.Len())
	for i := range questions {
		q := g.engine.Query(i, failed.Timeout)
		defer q.Free()
		q.Buf, q.Replies = command.AppendRead(q.Buf, key)
		g.engine.AskSoon(q)
		questions[i] = q
	}
	g.engine.Drive()
	for i, q := range questions {
		select {
		case <-q.Answered():
		case <-done:
			return nil, context.Canceled
		}
		if q.Err == engine.ErrClosed {
			return nil, q.Err
		}
		seen[i] = Sight{Node: g.Number(i), Addr: g.Addr(i)}
		if err := seen[i].read(q); err != nil {
			failed.Failures = append(failed.Failures, engine.Failure{Node: i, Err: err})
		}
	}
	for _, f := range g.Failures(&failed) {
		seen[f.Node].Err = f.Err
	}
	return seen, nil
}

// read reads the answer to AppendRead.
func (n *Sight) read(q *engine.Query) error {
	if q.Err != nil {
		return q.Err
	}
	ttl, value := &q.Said[0], &q.Said[1]
	switch {
	case cmp.Or(ttl.Err, value.Err) != nil:
		return cmp.Or(ttl.Err, value.Err)
	case ttl.Kind != resp.Integer || value.Kind != resp.Bulk:
		return engine.ErrMisfit
	case ttl.Ints[0] > 0 || ttl.Ints[0] == command.NoTTL:
		n.There, n.TTL, n.Value = true, max(0, time.Duration(ttl.Ints[0])*time.Millisecond), value.Text
	}
	return nil
}

// Prove is the TTL that a quorum of nodes shows at least of a lock with a value.
func (g *Group) Prove(ctx context.Context, key, value string) (ttl time.Duration, err error) {
	seen, err := g.read(ctx, key)
	if err != nil {
		return 0, err
	}
	op, ttl := prove(seen, value, g.Members().Quorum)
	if op.Err != nil {
		return 0, g.Explain(op, op.Err)
	}
	return ttl, nil
}

// leastLook is the least time for the nodes to answer a look.
const leastLook = 5 * time.Millisecond

// IsHeld reports whether a quorum of nodes shows one value at the key of a call with split votes: its holder's. It waits
// for all nodes, but not for long, since it is no attempt. What it does not learn, the next attempt finds out.
func (g *Group) IsHeld(split *engine.Call) bool {
	seen, err := g.ask(split.Watched(), split.KeyText(), max(leastLook, 4*split.Trip))
	return err == nil && summarize(seen, g.Members().Quorum).Value.Show() != ""
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
