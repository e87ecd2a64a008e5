package group

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/redlock-go/redlock/internal/command"
	"github.com/redlock-go/redlock/internal/engine"
	"github.com/redlock-go/redlock/internal/holding"
	"github.com/redlock-go/redlock/internal/token"
	"github.com/redlock-go/redlock/quorum"
)

// Sight is what a node has answered about a key.
type Sight struct {
	There bool          // there is such a key
	Value string        // its first bytes
	TTL   time.Duration // 0 if it has none
	Err   error         // why the node has not answered
	asked time.Duration // when it was asked, at the latest
}

// Inspect asks all nodes what they have at a key, and waits for all of them. The TTL is
// asked for first: a lock whose value is seen after that is the one whose TTL it was, or
// has been extended since.
func (g *Group) Inspect(ctx context.Context, key string) ([]Sight, error) {
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
	value.Watch(ctx)
	ttl.Watch(ctx)
	asked := g.clock.Now()
	if err := g.engine.DoAll(ctx, []*engine.Call{ttl, value}); err != nil {
		return nil, err
	}
	seen := make([]Sight, g.Len())
	for i := range seen {
		seen[i].asked = asked
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
	for _, failures := range [][]engine.Failure{g.Failures(&ttl.Op), g.Failures(&value.Op)} {
		for _, f := range failures {
			seen[f.Node] = Sight{Err: f.Err}
		}
	}
	return seen, nil
}

// Bounds of a value that Attach takes: what other clients write, and what is read back.
const (
	minValue = token.Size
	maxValue = 256
)

// Attach makes a handle of a lock that was acquired elsewhere, once a quorum of nodes has
// shown its value. Its validity is what was given, and what the nodes show at most.
func (g *Group) Attach(ctx context.Context, key, value string, validUntil time.Time) (Handle, error) {
	now := g.clock.Now()
	left := time.Until(validUntil)
	switch {
	case len(value) < minValue || len(value) > maxValue:
		return Handle{}, engine.WrongArgument("token has %d bytes, from %d to %d are allowed", len(value), minValue, maxValue)
	case left <= 0:
		return Handle{}, engine.WrongArgument("validity has ended %v ago", -left)
	}
	seen, err := g.Inspect(ctx, key)
	if err != nil {
		return Handle{}, err
	}
	var ends []time.Duration
	op := engine.Op{Err: engine.ErrNoQuorum} // as if this had been asked as one
	op.Tally.Reset(g.Len())
	for node, s := range seen {
		switch {
		case s.Err != nil:
			op.Tally.Record(node, quorum.Failed)
			op.Failures = append(op.Failures, engine.Failure{Node: node, Err: s.Err})
		case s.Value == value && s.TTL > 0: // a value without a TTL is no lock's
			op.Tally.Record(node, quorum.Granted)
			ends = append(ends, quorum.Until(s.asked, s.TTL))
		default:
			op.Tally.Record(node, quorum.Denied)
		}
	}
	switch {
	case op.Tally.Verdict() == quorum.Won:
	case op.Tally.Count(quorum.Denied) > g.Len()-quorum.Size(g.Len()):
		return Handle{}, engine.ErrNotHeld
	default:
		return Handle{}, g.errorOf(&op)
	}
	slices.Sort(ends)
	s := holding.State{Key: key, Until: min(now+left, ends[len(ends)-quorum.Size(g.Len())])}
	if g.clock.Now() >= s.Until {
		return Handle{}, engine.ErrExpired
	}
	s.TTL = min(max(s.Until-now, engine.MinTTL), cmp.Or(g.cfg.Engine.MaxTTL, engine.MaxTTL)).Truncate(time.Millisecond)
	copy(s.Token[:], value)
	s.More = &holding.More{Attached: true, Tail: value[token.Size:]}
	g.attached.Add(1)
	return g.begin(&s, 0, 0), nil
}
