package group

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/redlock-go/redlock/conn"
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
	Held  Holders       // of a shared lock
	Err   error         // why the node has not answered
}

// Inspect asks all nodes what they have at a key, and sums it up. Nothing is changed there, and values are not read
// at one moment: only what a quorum shows counts.
func (g *Group) Inspect(ctx context.Context, key string) (seen []Sight, all Summary, err error) {
	if seen, err = g.read(ctx, key); err == nil {
		all = summarize(seen, g.Config.members.Quorum)
	}
	return seen, all, err
}

// read asks all nodes what they have at a key, and waits for all of them.
func (g *Group) read(ctx context.Context, key string) ([]Sight, error) {
	if err := cmp.Or(ctx.Err(), g.Engine.CheckKey([]byte(key))); err != nil {
		return nil, err
	}
	seen, err := g.ask(ctx.Done(), key, cmp.Or(g.Config.Engine.Timeout, engine.MaxTimeout))
	if err == context.Canceled {
		err = cmp.Or(ctx.Err(), err)
	}
	return seen, err
}

// ask is read of a right key, for a caller whose context is known by its Done channel. Nodes with a value of another
// type are asked again, for the holders of a shared lock.
func (g *Group) ask(done <-chan struct{}, key string, timeout time.Duration) ([]Sight, error) {
	failed, again := engine.Op{Timeout: timeout}, quorum.Set(0)
	seen := make([]Sight, g.Len())
	for i := range seen {
		seen[i] = Sight{Node: g.Number(i), Addr: g.Addr(i)}
	}
	fail := func(node int, err error) {
		if err != nil {
			failed.Failures = append(failed.Failures, engine.Failure{Node: node, Err: err})
		}
	}
	err := g.each(quorum.First(g.Len()), done, timeout, func(q *engine.Query) {
		q.Buf, q.Replies = command.AppendRead(q.Buf, key)
	}, func(node int, q *engine.Query) {
		if err := seen[node].read(q); err == errOfType {
			again.Add(node)
		} else {
			fail(node, err)
		}
	})
	if err == nil {
		err = g.each(again, done, timeout, func(q *engine.Query) {
			q.Buf, q.Replies = command.AppendHolders(q.Buf, key, mostShown)
		}, func(node int, q *engine.Query) { fail(node, seen[node].readHolders(q)) })
	}
	for _, f := range g.Failures(&failed) {
		seen[f.Node].Err = f.Err
	}
	return seen, err
}

// each asks some nodes, and waits for their answers. A quorum of these is evidence, so they are votes.
func (g *Group) each(nodes quorum.Set, done <-chan struct{}, timeout time.Duration, ask func(*engine.Query), answered func(int, *engine.Query)) error {
	for isFirst := true; nodes != 0; isFirst = false {
		var questions []*engine.Query
		for node := range nodes.All() {
			q := g.Engine.Query(node, timeout)
			defer q.Free()
			q.Votes = true
			ask(q)
			g.Engine.AskSoon(q)
			questions = append(questions, q)
		}
		g.Engine.Drive()
		nodes = 0
		for _, q := range questions {
			select {
			case <-q.Answered():
			case <-done:
				return context.Canceled
			}
			switch {
			case q.Err == engine.ErrClosed:
				return q.Err
			case isFirst && errors.Is(q.Err, conn.ErrEmptied): // it was sent before that was known
				nodes.Add(q.Node)
			default:
				answered(q.Node, q)
			}
		}
	}
	return nil
}

// errOfType is the answer of a node with a value of another type.
var errOfType = errors.New("value of another type")

// read reads the answer to AppendRead.
func (n *Sight) read(q *engine.Query) error {
	if q.Err != nil {
		return q.Err
	}
	ttl, value := &q.Said[0], &q.Said[1]
	switch {
	case ttl.Err == nil && value.OfType:
		return errOfType
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
	if slices.ContainsFunc(seen, func(s Sight) bool { return s.Held.has(value) }) {
		return 0, engine.WrongArgument("lock is shared: only its own holder can extend or release it")
	}
	nodes := g.Config.members.Quorum
	if s := summarize(seen, nodes); s.Status == heldBy && s.Value.Show() == value && s.TTL > 0 { // a value without a TTL is no lock's
		return s.TTL, nil
	}
	op := unproven(seen, value, nodes)
	return 0, g.Explain(op, op.Err)
}

// leastLook is the least time for the nodes to answer a look.
const leastLook = 5 * time.Millisecond

// IsHeld reports whether a quorum of nodes shows a holder that excludes a call with split votes at its key. It waits
// for all nodes, but not for long, since it is no attempt, and not beyond the call's limit. What it does not learn, the
// next attempt finds out.
func (g *Group) IsHeld(split *engine.Call) bool {
	limit, long := split.Watched(), max(leastLook, 4*split.Trip)
	if limit.At != 0 {
		long = min(long, max(limit.At.Sub(g.Config.Clock.Now()), time.Millisecond))
	}
	seen, err := g.ask(limit.Done, split.KeyText(), long)
	if err != nil {
		return false
	}
	s := summarize(seen, g.Config.members.Quorum)
	return s.Value.Show() != "" || s.Status == sharedBy && !split.Shared
}

// unproven is what nodes have shown of a value that no quorum has, as if asked in one operation.
func unproven(seen []Sight, value string, nodes *quorum.Config) *engine.Op {
	op := &engine.Op{Err: engine.ErrNoQuorum}
	op.Tally.Reset(nodes)
	for node, s := range seen {
		switch {
		case s.Err != nil:
			op.Tally.Record(node, quorum.Failed)
			op.Failures = append(op.Failures, engine.Failure{Node: node, Err: s.Err})
		case s.Value == value && s.TTL > 0:
			op.Tally.Record(node, quorum.Granted)
		default:
			op.Tally.Record(node, quorum.Denied)
		}
	}
	if nodes.Blocks(op.Tally.Nodes(quorum.Denied)) {
		op.Err = engine.ErrNotHeld
	}
	return op
}

// shownBy is the longest TTL shown by each node of some quorum among some nodes.
func shownBy(seen []Sight, among quorum.Set, nodes *quorum.Config) time.Duration {
	return leastOf(among, nodes, func(node int) time.Duration { return seen[node].TTL })
}

// leastOf is the largest number that each node of some quorum among some nodes reaches.
func leastOf[N cmp.Ordered](among quorum.Set, nodes *quorum.Config, of func(node int) N) (least N) {
	order := slices.Collect(among.All())
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(of(b), of(a)) })
	most := quorum.Set(0)
	for _, node := range order {
		most.Add(node)
		if nodes.IsQuorum(most) {
			return of(node)
		}
	}
	return least
}
