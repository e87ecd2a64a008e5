package histories

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/base/knobs"
	"github.com/redlock-go/redlock/internal/rules/fencing"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
	"github.com/redlock-go/redlock/internal/test/testkit/virtual"
)

const fenceSet = "redlock:fence"

// fencedAt makes a client fenced, by a clock off by the present off.
func fencedAt(off *atomic.Int64) func(*redlock.Config) {
	return func(c *redlock.Config) {
		c.Fenced, c.MaxTTL, knobs.Of(c).TrustRestarts = true, maxTTL, true
		knobs.Of(c).FenceClock = func() time.Time { return virtual.TimeOfDay().Add(time.Duration(off.Load())) }
	}
}

func fencedRight() func(*redlock.Config) { return fencedAt(new(atomic.Int64)) }

// lockOnce locks and unlocks a key, and returns the token.
func (s *stage) lockOnce(c *redlock.Client, key string) uint64 {
	l := s.take(c, key, maxTTL)
	s.release(l)
	return l.Fence()
}

var fences = []scenario{
	// The nodes know tokens of different sizes, for free keys, and a minority is down. No kind of
	// acquire of a new client finds a key taken.
	{"first attempts of a fenced client", 5, func(s *stage) {
		require.NoError(s.T, s.Client(fencedRight()).InitFencing(s.ctx))
		for i, node := range s.Servers {
			n, _ := node.Fence(fenceSet)
			n.Floor = fencing.Token(virtual.TimeOfDay().Add(time.Duration(i%3+1) * time.Hour).UnixMicro())
			node.SetFence(fenceSet, n)
		}
		s.Servers[0].Down()
		s.Servers[4].Down()
		for i := range 20 {
			ctx, c := s.ctx, s.Client(fencedRight())
			key := fmt.Sprint("k", i)
			switch i % 3 {
			case 0:
				_, err := c.TryAcquire(ctx, key, maxTTL)
				require.NoError(s.T, err, i)
			case 1:
				_, err := c.TryAcquireAll(ctx, maxTTL, key, "and "+key)
				require.NoError(s.T, err, i)
			case 2:
				op := &redlock.Op{Kind: redlock.OpAcquire, Key: []byte(key), TTL: maxTTL}
				require.NoError(s.T, cluster.Submit(s.T, c, op), i)
				require.NotZero(s.T, op.Fence())
				op.Kind = redlock.OpRelease // with the token of the successful attempt
				require.NoError(s.T, cluster.Submit(s.T, c, op), i)
			}
			require.NoError(s.T, c.Close())
		}
	}},
	// A node brought back by another client is known to vote, though this one cannot read the
	// others to learn from.
	{"node that another client has brought back", 3, func(s *stage) {
		c, m := s.ClientOn(s.Machine(), fencedRight())
		other := s.Client(fencedRight())
		require.NoError(s.T, other.InitFencing(s.ctx))
		time.Sleep(2 * time.Second)
		require.NoError(s.T, cluster.IsReady(c))
		m.Link(s.Nodes[2]).Refuse(true)
		m.Link(s.Nodes[2]).Reset()
		time.Sleep(time.Second)
		require.NoError(s.T, cluster.IsReady(c))
		s.Servers[0].Flush()
		_, err := c.TryAcquire(s.ctx, "k", maxTTL)
		require.Error(s.T, err, "one node is left")
		time.Sleep(10 * time.Millisecond)
		require.ErrorContains(s.T, cluster.IsReady(c), "its quarantine ends in 2.0")
		time.Sleep(2*maxTTL + 3*time.Second) // the other notices, and does not begin its quarantine before
		s.lockOnce(other, "k")
		require.NoError(s.T, cluster.IsReady(c))
		s.lockOnce(c, "k")
	}},
	// Clients without locks learn that nodes have lost their tokens one after another, within the
	// longest TTL and a second, and bring each back before the next.
	{"idle fenced clients", 3, func(s *stage) {
		c := s.Client(fencedRight())
		require.NoError(s.T, c.InitFencing(s.ctx))
		s.Client(fencedRight())
		token := s.lockOnce(c, "k")
		time.Sleep(time.Minute)
		for i, node := range append(s.Servers, s.Servers...) {
			node.Flush()
			time.Sleep(maxTTL + time.Second)
			n, _ := node.Fence(fenceSet)
			require.NotEqual(s.T, fencing.Absent, n.Marker.Phase, i)
			time.Sleep(maxTTL + 2*time.Second)
		}
		require.Greater(s.T, s.lockOnce(c, "k"), token)
	}},
	// Two operators have the same number. One's call returns, and a lock is granted by a clock a
	// day ahead. Then all nodes forget again, while the other's call, from a machine that stood
	// still, is under way: its number does not cover this lock.
	{"number that does not cover a later loss", 3, func(s *stage) {
		var ahead atomic.Int64
		ahead.Store(int64(24 * time.Hour))
		far, first := s.Client(fencedAt(&ahead)), s.Client(fencedRight())
		late, m := s.ClientOn(s.Machine(), fencedRight())
		require.NoError(s.T, first.InitFencing(s.ctx))
		seen := s.lockOnce(first, "k")
		forget := func() {
			s.Servers.Flush()
			time.Sleep(maxTTL + maxTTL/50)
		}
		forget()
		call := testkit.Start(func() error { return first.RecoverFencing(s.ctx, seen) })
		ctx, cancel := context.WithTimeout(s.ctx, 4*maxTTL)
		defer cancel()
		behind := testkit.Start(func() error { return late.RecoverFencing(ctx, seen) })
		time.Sleep(maxTTL / 2)
		m.Suspend()
		require.NoError(s.T, testkit.Outcome(s.T, "RecoverFencing", call))
		seen = s.lockOnce(far, "k")
		forget()
		m.Wake()
		require.Error(s.T, testkit.Outcome(s.T, "RecoverFencing", behind))
		_, err := late.TryAcquire(s.ctx, "k", maxTTL)
		require.ErrorIs(s.T, err, redlock.ErrForgotten)
		require.NoError(s.T, late.RecoverFencing(s.ctx, seen))
		require.Greater(s.T, s.lockOnce(first, "k"), seen)
	}},
	// A client that looks writes nothing, and shows for how long a node has no vote: by the node's clock, since others
	// bring the node back. What an act writes is written once it has begun.
	{"look at a node that others bring back", 3, func(s *stage) {
		c := s.Client(fencedRight())
		require.NoError(s.T, c.InitFencing(s.ctx))
		looks := func(c *redlock.Config) { knobs.Of(c).Looks = true }
		s.Servers[0].Flush()
		early := s.Client(fencedRight(), looks)
		time.Sleep(2*maxTTL + 4*time.Second)
		s.Servers[0].SetClock(time.Hour)
		late := s.Client(fencedRight(), looks)
		time.Sleep(10 * time.Millisecond)
		require.Zero(s.T, early.Stats().Nodes[0].NoVoteFor)
		require.NoError(s.T, early.Stats().Nodes[0].NoVote)
		s.Servers[0].Flush()
		require.NoError(s.T, c.Close())
		for range 2 {
			time.Sleep(30 * time.Second)
			n, _ := s.Servers[0].Fence(fenceSet)
			require.Zero(s.T, n.Marker)
		}
		c = s.Client(fencedRight())
		time.Sleep(1500 * time.Millisecond) // it asks once a second
		require.InDelta(s.T, maxTTL-1500*time.Millisecond, late.Stats().Nodes[0].NoVoteFor, float64(maxTTL/20))
		require.NoError(s.T, c.Close())
		time.Sleep(fencing.Lapse + time.Second)
		s.Servers.Flush()
		require.NoError(s.T, late.RecoverFencing(s.ctx, 1))
		time.Sleep(2 * time.Second)
		require.NoError(s.T, cluster.IsReady(early))
	}},
	// Clients that are configured otherwise give nodes notice, and so no act is begun beside them. 10 s after their end
	// they do not count.
	{"notice that is not repeated", 3, func(s *stage) {
		other := s.Client(fencedRight(), func(c *redlock.Config) { c.MaxTTL *= 2 })
		c := s.Client(fencedRight())
		time.Sleep(time.Minute)
		ctx, cancel := context.WithTimeout(s.ctx, maxTTL/2)
		defer cancel()
		refused := c.InitFencing(ctx)
		require.ErrorIs(s.T, refused, redlock.ErrConfig)
		require.ErrorContains(s.T, refused, "end these clients: 10s later they do not count")
		require.NoError(s.T, other.Close())
		time.Sleep(fencing.Lapse + 2*time.Second)
		require.NoError(s.T, c.InitFencing(s.ctx))
		s.lockOnce(c, "k")
	}},
	// The questions of clients that wait for an operator, at each node.
	{"fencing is not initialized yet", 3, func(s *stage) {
		for range 20 {
			s.Client(fencedRight())
		}
		time.Sleep(10 * time.Second)
		before := s.commands()
		time.Sleep(time.Minute)
		require.LessOrEqual(s.T, s.commands()-before, int64(len(s.Nodes)*20*60), "each node is asked once a second by each client")
		late := s.Client(fencedRight())
		require.NoError(s.T, late.InitFencing(s.ctx))
		s.lockOnce(late, "k")
	}},
	// Nodes that forget nothing in a restart need no quarantine and no operator, one right after
	// another; one of them without its tokens does all the same.
	{"persistent nodes", 3, func(s *stage) {
		for i, node := range s.Nodes {
			s.Nodes[i] = "redis://" + node + "?persistent=yes"
		}
		c := s.Client(fencedRight())
		require.NoError(s.T, c.InitFencing(s.ctx))
		token := s.lockOnce(c, "k")
		s.Servers.Each(func(node *fakeredis.Server) { require.NoError(s.T, node.Restart(false)) })
		time.Sleep(time.Millisecond)
		require.Error(s.T, cluster.IsReady(c))
		ctx, cancel := context.WithTimeout(s.ctx, time.Second)
		defer cancel()
		require.NoError(s.T, c.Ready(ctx))
		require.Greater(s.T, s.lockOnce(c, "k"), token)
		require.NoError(s.T, s.Servers[0].Restart(true))
		require.NoError(s.T, s.Servers[1].Restart(true))
		time.Sleep(100 * time.Millisecond)
		_, err := c.TryAcquire(s.ctx, "k", maxTTL)
		require.ErrorIs(s.T, err, redlock.ErrForgotten)
	}},
}
