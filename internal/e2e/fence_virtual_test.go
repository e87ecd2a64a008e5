package e2e

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/fakeredis"
	"github.com/redlock-go/redlock/internal/fencing"
	"github.com/redlock-go/redlock/internal/knobs"
	"github.com/redlock-go/redlock/internal/testkit"
	"github.com/redlock-go/redlock/internal/testkit/cluster"
	"github.com/redlock-go/redlock/internal/testkit/virtual"
)

// virtualTTL is the longest TTL of fenced clients in virtual time.
const virtualTTL = 2 * time.Second

// fencedAt makes a client fenced, by a clock that is off by what off is at the moment.
func fencedAt(off *atomic.Int64) func(*redlock.Config) {
	return func(c *redlock.Config) {
		c.Fenced, c.MaxTTL, knobs.Of(c).TrustRestarts = true, virtualTTL, true
		knobs.Of(c).FenceClock = func() time.Time { return virtual.TimeOfDay().Add(time.Duration(off.Load())) }
	}
}

func fencedRight() func(*redlock.Config) { return fencedAt(new(atomic.Int64)) }

// lockOnce locks and unlocks a key, and returns the token.
func lockOnce(w *virtual.World, c *redlock.Client, key string) uint64 {
	l, err := c.TryAcquire(w.T.Context(), key, virtualTTL)
	require.NoError(w.T, err)
	require.NoError(w.T, l.Release(w.T.Context()))
	return l.Fence()
}

// TestFenceTotalLoss: clocks that are a day off, that step by seconds and swing, and then no
// node knows any token. An operator whose clock is right gives the largest that the resources
// have seen: all that follow are larger, also those of a client that is behind.
func TestFenceTotalLoss(t *testing.T) {
	virtual.Run(t, 3, func(w *virtual.World) {
		var swings atomic.Int64
		var behind atomic.Int64
		behind.Store(int64(-24 * time.Hour))
		clients := []*redlock.Client{w.Client(fencedAt(&swings)), w.Client(fencedAt(&behind)), w.Client(fencedRight())}
		operator := clients[2]
		require.NoError(w.T, operator.InitFencing(w.T.Context(), 0))
		var seen uint64
		for loss, off := range []time.Duration{5 * time.Second, 24 * time.Hour, -time.Hour, 0} {
			for i := range 60 {
				swings.Store(int64(off) * int64(i%2))
				token := lockOnce(w, clients[i%3], "k")
				require.Greater(w.T, token, seen, "%d losses", loss)
				seen = token
				time.Sleep(time.Millisecond)
			}
			for _, s := range w.Servers {
				s.Flush()
			}
			time.Sleep(time.Duration(loss) * time.Second)
			require.NoError(w.T, operator.InitFencing(w.T.Context(), seen))
		}
		require.Greater(w.T, lockOnce(w, clients[1], "another"), seen)
	})
}

// TestFenceFarToken: a token that is a day ahead, on one key, then nodes that learn it as their
// floor, and one that goes away. Every key can be locked at the second attempt.
func TestFenceFarToken(t *testing.T) {
	virtual.Run(t, 3, func(w *virtual.World) {
		var day atomic.Int64
		day.Store(int64(24 * time.Hour))
		attempts := 0
		far, c := w.Client(fencedAt(&day)), w.Client(fencedRight(), func(c *redlock.Config) {
			c.Hooks.Attempt = func(a redlock.Attempt) {
				if a.Kind == redlock.OpAcquire {
					attempts++
				}
			}
		})
		require.NoError(w.T, c.InitFencing(w.T.Context(), 0))
		lockOnce(w, far, "hot")
		w.Servers[0].Flush()
		time.Sleep(3 * virtualTTL) // it is back, and a day ahead for all keys
		w.Servers[1].Down()
		time.Sleep(time.Second)
		for i := range 20 {
			attempts = 0
			lockOnce(w, c, fmt.Sprint("k", i))
			require.LessOrEqual(w.T, attempts, 2)
		}
	})
}

// TestFenceFirstAttempts: the nodes know tokens of different sizes, for keys that are free, and
// a minority is down. A new client is never told that a key is taken, by any kind of acquire.
func TestFenceFirstAttempts(t *testing.T) {
	virtual.Run(t, 5, func(w *virtual.World) {
		require.NoError(w.T, w.Client(fencedRight()).InitFencing(w.T.Context(), 0))
		for i, s := range w.Servers {
			n, _ := s.Fence(fenceSet)
			n.Floor = uint64(virtual.TimeOfDay().Add(time.Duration(i%3+1) * time.Hour).UnixMicro())
			s.SetFence(fenceSet, n)
		}
		w.Servers[0].Down()
		w.Servers[4].Down()
		for i := range 20 {
			ctx, c := w.T.Context(), w.Client(fencedRight())
			key := fmt.Sprint("k", i)
			switch i % 3 {
			case 0:
				_, err := c.TryAcquire(ctx, key, virtualTTL)
				require.NoError(w.T, err, i)
			case 1:
				_, err := c.TryAcquireAll(ctx, virtualTTL, key, "and "+key)
				require.NoError(w.T, err, i)
			case 2:
				done := make(chan error, 1)
				op := &redlock.Op{Kind: redlock.OpAcquire, Key: []byte(key), TTL: virtualTTL, Done: func(op *redlock.Op) { done <- op.Err() }}
				require.NoError(w.T, c.Submit(op))
				require.NoError(w.T, <-done, i)
				require.NotZero(w.T, op.Fence())
				op.Kind = redlock.OpRelease // with the token of the attempt that has won
				require.NoError(w.T, c.Submit(op))
				require.NoError(w.T, <-done, i)
			}
			require.NoError(w.T, c.Close())
		}
	})
}

// TestSuspendedAcquire: the machine is suspended while an acquire is under way, for longer than
// its TTL, and no clock that stands still then may call it won: another client has had the
// lock, with a larger token. So it is for locks without tokens.
func TestSuspendedAcquire(t *testing.T) {
	for _, name := range []string{"plain", "fenced"} {
		t.Run(name, func(t *testing.T) {
			virtual.Run(t, 3, func(w *virtual.World) {
				settings := func(c *redlock.Config) { c.NodeTimeout = time.Second }
				if name == "fenced" {
					settings = func(c *redlock.Config) { fencedRight()(c); c.NodeTimeout = time.Second }
				}
				c, m := w.ClientOn(w.Machine(), settings)
				other := w.Client(settings)
				if name == "fenced" {
					require.NoError(w.T, other.InitFencing(w.T.Context(), 0))
					require.NoError(w.T, c.Ready(w.T.Context()))
				}
				submitted := func(key string) error {
					done := make(chan error, 1)
					op := &redlock.Op{Kind: redlock.OpAcquire, Key: []byte(key), TTL: virtualTTL, Done: func(op *redlock.Op) { done <- op.Err() }}
					require.NoError(w.T, c.Submit(op))
					return <-done
				}
				for _, acquire := range []func(key string) error{
					func(key string) error { _, err := c.TryAcquire(w.T.Context(), key, virtualTTL); return err },
					func(key string) error {
						_, err := c.TryAcquireAll(w.T.Context(), virtualTTL, key, "and "+key)
						return err
					},
					submitted,
				} {
					for _, node := range w.Nodes {
						m.Link(node).Hold(false, true)
					}
					won := testkit.InBackground(func() (struct{}, error) { return struct{}{}, acquire("k") })
					time.Sleep(time.Millisecond) // the nodes have granted it
					require.Equal(w.T, 3, w.Holders("k"))
					m.Suspend()
					for _, node := range w.Nodes {
						m.Link(node).Release() // what the nodes have answered is there when it wakes
					}
					time.Sleep(virtualTTL + time.Millisecond)
					_, err := other.TryAcquire(w.T.Context(), "k", virtualTTL)
					require.NoError(w.T, err)
					m.Wake()
					require.ErrorIs(w.T, (<-won).Err, redlock.ErrExpired)
					time.Sleep(2 * virtualTTL)
				}
			})
		})
	}
}

// TestFenceReadyAgain: a node that another client has brought back is known to vote, though this
// one cannot read the others that it would have to learn from.
func TestFenceReadyAgain(t *testing.T) {
	virtual.Run(t, 3, func(w *virtual.World) {
		c, m := w.ClientOn(w.Machine(), fencedRight())
		other := w.Client(fencedRight())
		require.NoError(w.T, other.InitFencing(w.T.Context(), 0))
		time.Sleep(2 * time.Second)
		require.NoError(w.T, cluster.IsReady(c))
		m.Link(w.Nodes[2]).Refuse(true)
		m.Link(w.Nodes[2]).Reset()
		time.Sleep(time.Second)
		require.NoError(w.T, cluster.IsReady(c))
		w.Servers[0].Flush()
		_, err := c.TryAcquire(w.T.Context(), "k", virtualTTL)
		require.Error(w.T, err, "one node is left")
		time.Sleep(10 * time.Millisecond)
		require.ErrorContains(w.T, cluster.IsReady(c), "its quarantine ends in 2.0")
		time.Sleep(2*virtualTTL + 3*time.Second) // the other notices, and does not begin its quarantine before
		lockOnce(w, other, "k")
		require.NoError(w.T, cluster.IsReady(c))
		lockOnce(w, c, "k")
	})
}

// TestFenceIdle: clients that lock nothing learn that nodes have lost their tokens one after
// another, within the longest TTL and a second, and bring each back before the next.
func TestFenceIdle(t *testing.T) {
	virtual.Run(t, 3, func(w *virtual.World) {
		c := w.Client(fencedRight())
		require.NoError(w.T, c.InitFencing(w.T.Context(), 0))
		w.Client(fencedRight())
		token := lockOnce(w, c, "k")
		time.Sleep(time.Minute)
		for i, s := range append(w.Servers, w.Servers...) {
			s.Flush()
			time.Sleep(virtualTTL + time.Second)
			n, _ := s.Fence(fenceSet)
			require.NotEqual(w.T, fencing.Absent, n.Marker.Phase, i)
			time.Sleep(virtualTTL + 2*time.Second)
		}
		require.Greater(w.T, lockOnce(w, c, "k"), token)
	})
}

// TestFenceUninitialized: what clients that wait for an operator ask each node.
func TestFenceUninitialized(t *testing.T) {
	virtual.Run(t, 3, func(w *virtual.World) {
		for range 20 {
			w.Client(fencedRight())
		}
		time.Sleep(10 * time.Second)
		var before, after int64
		commands := func() (sum int64) {
			for _, n := range w.Servers[1].Commands() {
				sum += n
			}
			return sum
		}
		before = commands()
		time.Sleep(time.Minute)
		after = commands()
		t.Logf("%.1f commands/s", float64(after-before)/60)
		require.LessOrEqual(w.T, after-before, int64(20*60))
		late := w.Client(fencedRight())
		require.NoError(w.T, late.InitFencing(w.T.Context(), 0))
		lockOnce(w, late, "k")
	})
}

// TestFencePersistent: nodes that forget nothing in a restart need no quarantine and no
// operator, one right after another; one of them that has lost its tokens all the same does.
func TestFencePersistent(t *testing.T) {
	virtual.Run(t, 3, func(w *virtual.World) {
		for i, node := range w.Nodes {
			w.Nodes[i] = "redis://" + node + "?persistent=yes"
		}
		c := w.Client(fencedRight())
		require.NoError(w.T, c.InitFencing(w.T.Context(), 0))
		token := lockOnce(w, c, "k")
		for _, s := range w.Servers {
			require.NoError(w.T, s.Restart(false))
		}
		time.Sleep(time.Millisecond)
		require.Error(w.T, cluster.IsReady(c))
		ctx, cancel := context.WithTimeout(w.T.Context(), time.Second)
		defer cancel()
		require.NoError(w.T, c.Ready(ctx))
		require.Greater(w.T, lockOnce(w, c, "k"), token)
		require.NoError(w.T, w.Servers[0].Restart(true))
		require.NoError(w.T, w.Servers[1].Restart(true))
		time.Sleep(100 * time.Millisecond)
		_, err := c.TryAcquire(w.T.Context(), "k", virtualTTL)
		require.ErrorIs(w.T, err, redlock.ErrForgotten)
	}, fakeredis.Options{})
}
