package e2e

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/realredis"
	"github.com/redlock-go/redlock/internal/testkit"
	"github.com/redlock-go/redlock/internal/testkit/cluster"
)

// TestRealLife is the life of a lock on real servers, as told by two clients.
func TestRealLife(t *testing.T) {
	servers := realredis.StartN(t, 3)
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		ours := cluster.Connect(t, realAddrs(servers), cluster.Portable(portable))
		theirs := cluster.Connect(t, realAddrs(servers), cluster.Portable(!portable))
		for range 20 {
			l := cluster.MustAcquire(t, ours, "k", ttl)
			require.Greater(t, l.Remaining(), ttl-cluster.Drift(ttl)-testkit.Patience)
			_, err := theirs.TryAcquire(t.Context(), "k", ttl)
			require.Equal(t, redlock.ErrTaken, err)
			require.NoError(t, l.Extend(t.Context(), 2*ttl))
			require.Greater(t, l.Remaining(), ttl)

			waiter := testkit.InBackground(func() (redlock.Lock, error) { return theirs.Acquire(t.Context(), "k", ttl) })
			require.NoError(t, l.Release(t.Context()))
			require.Equal(t, redlock.ErrNotHeld, l.Release(t.Context()))
			got := testkit.Get(t, waiter)
			require.NoError(t, got.Err)
			require.NoError(t, got.Value.Release(t.Context()))
		}
	})
}

// TestRealExpiry: a lock that nobody releases ends by itself, not before its
// validity, and cannot be extended then.
func TestRealExpiry(t *testing.T) {
	c := cluster.Connect(t, realAddrs(realredis.StartN(t, 3)))
	l, err := c.Acquire(t.Context(), "k", 300*time.Millisecond)
	require.NoError(t, err)
	next, err := c.Acquire(t.Context(), "k", ttl)
	require.NoError(t, err)
	require.Zero(t, l.Remaining())
	require.Equal(t, redlock.ErrExpired, l.Extend(t.Context(), ttl))
	require.Equal(t, redlock.ErrNotHeld, l.Release(t.Context()), "it is another's now")
	require.Positive(t, next.Remaining())
	require.NoError(t, next.Extend(t.Context(), ttl))
	require.NoError(t, next.Release(t.Context()))
}

// TestRealScriptFlush: real servers name the scripts as we do, and forget them.
func TestRealScriptFlush(t *testing.T) {
	servers := realredis.StartN(t, 3)
	c := cluster.Connect(t, realAddrs(servers))
	for range 5 {
		l := cluster.MustAcquire(t, c, "k", ttl)
		for range 2 {
			for _, s := range servers {
				testkit.DialText(t, s.Addr()).Must("SCRIPT FLUSH")
			}
			require.NoError(t, l.Extend(t.Context(), ttl))
		}
		for _, s := range servers {
			testkit.DialText(t, s.Addr()).Must("SCRIPT FLUSH")
		}
		require.NoError(t, l.Release(t.Context()))
	}
}

// TestRealOutages: two of five stopped cost no time; a third one is one too
// many. Killed ones are back once they are restarted.
func TestRealOutages(t *testing.T) {
	const brief = time.Second // so long have those that were restarted no vote
	servers := realredis.StartN(t, 5)
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		c := cluster.Connect(t, realAddrs(servers), cluster.Portable(portable), cluster.NodeTimeout(200*time.Millisecond))
		slow := cluster.Connect(t, realAddrs(servers), cluster.Portable(portable)) // whom a timeout would cost much
		for _, s := range servers[:2] {
			require.NoError(t, s.Stop())
		}
		testkit.AtOnce(t, func() {
			for range 20 {
				require.NoError(t, cluster.MustAcquire(t, slow, "k", brief).Release(t.Context()))
			}
		})
		require.NoError(t, servers[2].Stop())
		_, err := c.TryAcquire(t.Context(), "k", brief)
		var quorum *redlock.QuorumError
		require.True(t, errors.As(err, &quorum))
		require.Len(t, quorum.Failed, 3)
		require.Equal(t, servers[0].Addr(), quorum.Failed[0].Addr)
		for _, s := range servers[:3] {
			require.NoError(t, s.Cont())
		}
		testkit.Await(t, "nothing left behind", func() bool {
			l, err := c.TryAcquire(t.Context(), "k", brief)
			return err == nil && l.Release(t.Context()) == nil
		})

		for _, s := range servers[:3] {
			require.NoError(t, s.Kill())
		}
		testkit.AtOnce(t, func() {
			_, err := slow.TryAcquire(t.Context(), "k", brief)
			require.ErrorIs(t, err, redlock.ErrNoQuorum)
		})
		for _, s := range servers[:3] {
			require.NoError(t, s.Restart())
		}
		l, err := slow.Acquire(t.Context(), "another", brief)
		require.NoError(t, err)
		require.NoError(t, l.Release(t.Context()))
	})
}

// TestRealPassword: asked for, right and wrong.
func TestRealPassword(t *testing.T) {
	servers := realredis.StartN(t, 1, realredis.Options{Password: "sesame"})
	for given, want := range map[string]string{":sesame@": "", "default:sesame@": "", ":4711@": "credentials", "nobody:sesame@": "credentials", "": "NOAUTH"} {
		c := cluster.Connect(t, []string{"redis://" + given + servers[0].Addr() + "/3"})
		l, err := c.TryAcquire(t.Context(), "k", ttl)
		if want == "" {
			require.NoError(t, err)
			require.NoError(t, l.Release(t.Context()))
			continue
		}
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "sesame")
		require.NotContains(t, err.Error(), "4711")
	}
}

// TestRealSameServer is found out by its run id.
func TestRealSameServer(t *testing.T) {
	servers := realredis.StartN(t, 2)
	_, err := redlock.New(redlock.Config{Nodes: append(realAddrs(servers), forward(t, servers[0].Addr()))})
	require.ErrorIs(t, err, conn.ErrSameServer)
}

// TestRealExclusion: two clients, a few keys, a counter behind each.
func TestRealExclusion(t *testing.T) {
	servers := realredis.StartN(t, 3)
	keys := []*guarded{{key: "a"}, {key: "b"}, {key: "c"}}
	var turns atomic.Int64
	var wg sync.WaitGroup
	for c := range 2 {
		client := cluster.Connect(t, realAddrs(servers), cluster.Portable(c == 1))
		for g := range 16 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for i := range 15 {
					k := keys[(g+i)%len(keys)]
					l, err := client.Acquire(context.Background(), k.key, ttl)
					if err != nil {
						t.Error(err)
						return
					}
					k.use(t, int64(1+16*c+g))
					turns.Add(1)
					if err := l.Release(context.Background()); err != nil {
						t.Error(err)
					}
				}
			}()
		}
	}
	wg.Wait()
	counted := int64(0)
	for _, k := range keys {
		counted += k.counter.Load()
	}
	require.Equal(t, turns.Load(), counted)
}
