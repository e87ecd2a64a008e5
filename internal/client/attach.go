package client

import (
	"cmp"
	"context"
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/client/holding"
	"github.com/redlock-go/redlock/internal/rules/renewal"
	"github.com/redlock-go/redlock/internal/wire/token"
	"github.com/redlock-go/redlock/quorum"
)

// maxValue bounds a token of users, a value at a key: as much of one is read back.
const maxValue = 256

func wrongToken(length int) error {
	return engine.WrongArgument("token has %d bytes, from 1 to %d are allowed", length, maxValue)
}

// Attach makes a handle of a lock acquired elsewhere, once a quorum of nodes of each group of the key has shown its
// value. Its validity is the given one, and at most that shown by the nodes.
func (c *Client) Attach(ctx context.Context, key, value string, validUntil time.Time) (Handle, error) {
	g, second := c.of(key)
	groups := []*site{g}
	if second != nil {
		groups = append(groups, second)
	}
	ctx = orBackground(ctx)
	now := g.clock.Now()
	left := min(time.Until(validUntil.Round(0)), clock.Never.Sub(now)) // the time of day counts a suspension of the machine
	switch {
	case value == "" || len(value) > maxValue:
		return Handle{}, wrongToken(len(value))
	case left <= 0:
		return Handle{}, engine.WrongArgument("validity has ended %v ago", -left)
	}
	s := holding.State{Key: key, Held: renewal.Held{Until: now.Add(left)}, More: &holding.More{HasTail: true}}
	s.Token, s.More.Tail = token.Split(value)
	for _, g := range groups {
		s.Serial = g.lines.Doubt(key)
		ttl, err := g.Prove(ctx, key, value)
		if err != nil {
			return Handle{}, err
		}
		s.Until = min(s.Until, clock.Instant(quorum.Until(time.Duration(now), ttl)))
		if len(groups) > 1 {
			s.More.Keys, s.More.On = append(s.More.Keys, key), append(s.More.On, g.Engine)
		}
	}
	if g.clock.Now() >= s.Until {
		return Handle{}, engine.ErrExpired
	}
	s.TTL = min(max(s.Until.Sub(now), engine.MinTTL), cmp.Or(g.Config.Engine.MaxTTL, engine.MaxTTL)).Truncate(time.Millisecond)
	return handleOf(g, g.keeper.Begin(&s, 0, 0), key, s.More), nil
}
