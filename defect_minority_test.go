package redlock_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/fakeredis"
	"github.com/redlock-go/redlock/internal/realredis"
)

// downs are the nodes whose connections have ended.
type downs [5]atomic.Int64

func (d *downs) count(c *redlock.Config) {
	c.Hooks.NodeDown = func(n redlock.Node) { d[n.Index].Add(1) }
}

// pester has goroutines try to acquire, each a key of its own, without a pause
// for a time. It returns how many attempts there were. The keys are long: what a
// node is owed is bounded in bytes.
func pester(t *testing.T, c *redlock.Client, goroutines int, d time.Duration) (attempts int64) {
	t.Helper()
	var n atomic.Int64
	var wg sync.WaitGroup
	until := time.Now().Add(d)
	for g := range goroutines {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for key := fmt.Sprintf("k%0100d", g); time.Now().Before(until); n.Add(1) {
				l, err := c.TryAcquire(context.Background(), key, ttl)
				if err == nil { // a node was late to go
					_ = l.Release(context.Background())
				} else if !isOneOf(err, redlock.ErrNoQuorum, redlock.ErrTaken) {
					t.Error(err)
					return
				}
			}
		}()
	}
	ended := start(func() error { wg.Wait(); return nil })
	require.NoError(t, before(t, d+2*bound, "the attempts", ended))
	return n.Load()
}

// requireSpared requires that the connections to the well nodes are the first.
func requireSpared(t *testing.T, c *redlock.Client, lost *downs, first int) {
	t.Helper()
	for _, n := range statsOf(t, c).Nodes[first:] {
		require.Zero(t, lost[n.Index].Load(), "node %d was cut off", n.Index)
		require.EqualValues(t, 1, n.Connects, "node %d was dialled again", n.Index)
		require.True(t, n.Up)
	}
}

// TestDefectMinority: attempts without a pause, while a quorum is away, cost the
// nodes that are well neither their connections nor many releases, and leave no
// key.
func TestDefectMinority(t *testing.T) {
	onBothPaths(t, func(t *testing.T, portable bool) {
		var lost downs
		r := &rig{servers: startN(t, 5)} // not listened to: that would slow them down
		r.Client = newBound(t, fakeredis.Addrs(r.servers), impatient, portably(portable), lost.count)
		for _, s := range r.servers[:3] {
			s.Down()
		}
		awaitUpNodes(t, r.Client, 2)
		attempts := pester(t, r.Client, 64, 2*time.Second)
		s := statsOf(t, r.Client)
		t.Logf("%d attempts, %d cleanups", attempts, s.Cleanups)
		requireSpared(t, r.Client, &lost, 3)
		for i, s := range r.servers[3:] {
			awaitSoon(t, bound, fmt.Sprint("no key on node ", 3+i), func() bool { return s.Len() == 0 })
		}
		require.Less(t, s.Cleanups, uint64(10_000), "of %d attempts", attempts)
		r.heal(t)
		awaitUpNodes(t, r.Client, 5)
		pair(t, r.Client, "behind")
	})
}

// TestRealDefectMinority is the same with real servers that are killed.
func TestRealDefectMinority(t *testing.T) {
	servers := realredis.StartN(t, 5)
	admins := newAdmins(t, servers[3:])
	var lost downs
	c := newBound(t, realAddrs(servers), impatient, lost.count)
	for _, s := range servers[:3] {
		require.NoError(t, s.Kill())
	}
	awaitUpNodes(t, c, 2)
	attempts := pester(t, c, 8, 2*time.Second)
	requireSpared(t, c, &lost, 3)
	for i, a := range admins {
		awaitSoon(t, bound, fmt.Sprint("no key on server ", 3+i), func() bool { return a.do("DBSIZE") == ":0" })
	}
	require.Less(t, statsOf(t, c).Cleanups, uint64(10_000), "of %d attempts", attempts)
}

// TestDefectMinorityThatHeals: many goroutines with a key each. Once the outage
// is over no node has a key left.
func TestDefectMinorityThatHeals(t *testing.T) {
	for round := range 3 {
		t.Run(fmt.Sprint("round ", round), func(t *testing.T) {
			var lost downs
			r := &rig{servers: startN(t, 5)}
			r.Client = newBound(t, fakeredis.Addrs(r.servers), impatient, lost.count)
			t.Cleanup(func() { r.heal(t) })
			for _, s := range r.servers[:3] {
				s.Down()
			}
			awaitUpNodes(t, r.Client, 2)
			healed := start(func() error { // under load
				time.Sleep(1200 * time.Millisecond)
				for _, s := range r.servers {
					if err := s.Heal(); err != nil {
						return err
					}
				}
				return nil
			})
			pester(t, r.Client, 2048, 1500*time.Millisecond)
			require.NoError(t, soon(t, "Heal", healed))
			awaitUpNodes(t, r.Client, 5)
			for i, s := range r.servers {
				for deadline := time.Now().Add(bound); s.Len() > 0 && time.Now().Before(deadline); {
					time.Sleep(time.Millisecond)
				}
				require.Zero(t, s.Len(), "keys left on node %d", i)
			}
			requireSpared(t, r.Client, &lost, 3)
		})
	}
}

// TestRealDefectMinorityThatHeals is the same with real servers.
func TestRealDefectMinorityThatHeals(t *testing.T) {
	servers := realredis.StartN(t, 5)
	admins := newAdmins(t, servers[3:])
	for round := range 3 {
		t.Run(fmt.Sprint("round ", round), func(t *testing.T) {
			var lost downs
			c := newBound(t, persistentAddrs(servers), impatient, lost.count)
			for _, s := range servers[:3] {
				require.NoError(t, s.Kill())
			}
			awaitUpNodes(t, c, 2)
			pester(t, c, 2048, 1500*time.Millisecond)
			for _, s := range servers[:3] {
				require.NoError(t, s.Restart())
			}
			awaitUpNodes(t, c, 5)
			for i, a := range admins {
				left := ""
				for deadline := time.Now().Add(bound); left != ":0" && time.Now().Before(deadline); {
					left = a.do("DBSIZE")
				}
				if left != ":0" {
					a.must("FLUSHALL") // for the next round
				}
				require.Equal(t, ":0", left, "keys left on server %d", 3+i)
			}
			requireSpared(t, c, &lost, 3)
		})
	}
}

// TestDefectSilentMajority: where three of five accept everything and answer
// nothing, the other two keep their connections under load, and no key is left.
func TestDefectSilentMajority(t *testing.T) {
	for name, silence := range map[string]func(*fakeredis.Server){
		"hung": (*fakeredis.Server).Hang, "deaf": (*fakeredis.Server).HangDeaf, "mute": (*fakeredis.Server).Mute,
	} {
		t.Run(name, func(t *testing.T) {
			var lost downs
			r := &rig{servers: startN(t, 5)}
			r.Client = newBound(t, fakeredis.Addrs(r.servers), impatient, lost.count)
			t.Cleanup(func() { r.heal(t) })
			pair(t, r.Client, "before")
			for _, s := range r.servers[:3] {
				silence(s)
			}
			pester(t, r.Client, 512, 2*time.Second)
			requireSpared(t, r.Client, &lost, 3)
			r.heal(t)
			for i, s := range r.servers {
				awaitSoon(t, 2*bound, fmt.Sprint("no key on node ", i), func() bool { return s.Len() == 0 })
			}
			requireSpared(t, r.Client, &lost, 3)
		})
	}
}

// TestRealDefectSilentMajority is the same with real servers that are stopped.
func TestRealDefectSilentMajority(t *testing.T) {
	servers := realredis.StartN(t, 5)
	admins := newAdmins(t, servers)
	var lost downs
	c := newBound(t, realAddrs(servers), impatient, lost.count)
	pair(t, c, "before")
	t.Cleanup(func() {
		for _, s := range servers[:3] {
			_ = s.Cont()
		}
	})
	for _, s := range servers[:3] {
		require.NoError(t, s.Stop())
	}
	pester(t, c, 512, 2*time.Second)
	requireSpared(t, c, &lost, 3)
	for _, s := range servers[:3] {
		require.NoError(t, s.Cont())
	}
	for i, a := range admins {
		awaitSoon(t, 2*bound, fmt.Sprint("no key on server ", i), func() bool { return a.do("DBSIZE") == ":0" })
	}
	requireSpared(t, c, &lost, 3)
}
