package histories

import (
	"context"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

var waits = []scenario{
	// The winner of the queue does not stand in it for longer than it has the lock.
	{"released by an attached handle", 3, func(s *stage) {
		s.endOtherwise(promptly, func(c *redlock.Client, l redlock.Lock) {
			attached, err := c.Attach(s.ctx, "k", l.Token(), time.Now().Add(l.Remaining()))
			require.NoError(s.T, err)
			s.release(attached)
		})
	}},
	{"released by an operation of its client", 3, func(s *stage) {
		s.endOtherwise(promptly, func(c *redlock.Client, l redlock.Lock) {
			op := &redlock.Op{Kind: redlock.OpRelease, Key: []byte("k")}
			op.SetToken(l.Token())
			require.NoError(s.T, cluster.Submit(s.T, c, op))
		})
	}},
	{"deleted by hand", 3, func(s *stage) {
		s.endOtherwise(promptly, func(_ *redlock.Client, l redlock.Lock) {
			ctx, _ := l.KeepAlive(s.ctx)
			s.Servers.Del("k")
			<-ctx.Done()
			require.Equal(s.T, redlock.ErrNotHeld, context.Cause(ctx))
		})
	}},
	{"deleted by hand, and unnoticed", 3, func(s *stage) {
		s.endOtherwise(soon, func(*redlock.Client, redlock.Lock) {
			s.Servers.Del("k")
		})
	}},
	{"found lost by Extend", 3, func(s *stage) {
		s.endOtherwise(promptly, func(_ *redlock.Client, l redlock.Lock) {
			s.Servers.Del("k")
			require.ErrorIs(s.T, l.Extend(s.ctx, longTTL), redlock.ErrNotHeld)
		})
	}},
}

// endOtherwise has a lock won in the queue end otherwise than by its handle, beside another process
// waiting for it. Each of two callers has it within a bound.
func (s *stage) endOtherwise(bound time.Duration, end func(*redlock.Client, redlock.Lock)) {
	held, a := s.take(s.Client(), "k", longTTL), s.Client()
	first := s.wait(a, "k", longTTL)
	behind := s.wait(a, "k", longTTL) // the process then stays in the queue
	other := s.wait(s.Client(), "k", longTTL)
	s.release(held)
	end(a, s.granted(first))
	s.inTurn(bound, behind, other)
}
