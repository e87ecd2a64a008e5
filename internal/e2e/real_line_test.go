package e2e

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/knobs"
	"github.com/redlock-go/redlock/internal/realredis"
	"github.com/redlock-go/redlock/internal/testkit"
	"github.com/redlock-go/redlock/internal/testkit/cluster"
)

// rarely has waiters not find out by themselves, within a test, that a lock is free.
func rarely(c *redlock.Config) {
	c.Retry = redlock.Retry{Min: testkit.Patience, Max: testkit.Patience}
}

// awaitTracked waits until a server tracks so many keys: the key of a lock, and tickets.
func awaitTracked(t *testing.T, a *cluster.Admin, n string) {
	t.Helper()
	testkit.Await(t, "tracked keys", func() bool {
		return strings.Contains(a.Do("INFO stats"), "tracking_total_keys:"+n)
	})
}

// TestRealEveryEndWakes: a waiter hears of the end of a lock also where this process
// has ended it, in whatever way: a server does not tell a client of its own changes.
func TestRealEveryEndWakes(t *testing.T) {
	for name, hold := range map[string]func(t *testing.T, c *redlock.Client) (end func()){
		"a set": func(t *testing.T, c *redlock.Client) func() {
			l, err := c.AcquireAll(t.Context(), ttl, "a", "k")
			require.NoError(t, err)
			return func() { require.NoError(t, l.Release(t.Context())) }
		},
		"a set, not waited for": func(t *testing.T, c *redlock.Client) func() {
			l, err := c.AcquireAll(t.Context(), ttl, "a", "k")
			require.NoError(t, err)
			return l.ReleaseAsync
		},
		"an operation": func(t *testing.T, c *redlock.Client) func() {
			op := &redlock.Op{Kind: redlock.OpAcquire, Key: []byte("k"), TTL: ttl}
			require.NoError(t, cluster.Submit(t, c, op))
			return func() {
				op.Kind = redlock.OpRelease
				require.NoError(t, cluster.Submit(t, c, op))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := realredis.Start(t)
			admin := cluster.NewAdmin(t, s)
			c := cluster.Connect(t, []string{s.Addr()}, rarely)
			end := hold(t, c)
			next := testkit.InBackground(func() (redlock.Lock, error) { return c.Acquire(t.Context(), "k", ttl) })
			awaitTracked(t, admin, "2")
			time.Sleep(20 * time.Millisecond)
			end()
			testkit.AtOnce(t, func() { require.NoError(t, testkit.Get(t, next).Err) })
		})
	}
}

// TestRealWoken: a waiter hears of a release, whatever the key is, also one that looks like a
// name beside another.
func TestRealWoken(t *testing.T) {
	for name, key := range map[string]string{
		"usual":   "k",
		"longest": strings.Repeat("k", 4096),
		"a gate":  "k:redlock:gate",
		"a queue": "k:redlock:queue",
		"bytes":   "k\r\n\x00$3\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			s := realredis.Start(t)
			admin := cluster.NewAdmin(t, s)
			c, other := cluster.Connect(t, []string{s.Addr()}, rarely), cluster.Connect(t, []string{s.Addr()})
			held := cluster.MustAcquire(t, other, key, ttl)
			next := testkit.InBackground(func() (redlock.Lock, error) { return c.Acquire(t.Context(), key, ttl) })
			awaitTracked(t, admin, "2")
			time.Sleep(20 * time.Millisecond)
			require.NoError(t, held.Release(t.Context()))
			testkit.AtOnce(t, func() { require.NoError(t, testkit.Get(t, next).Err) })
		})
	}
}

// TestRealBusyRelease: a release that would take an acquire along, for which there is no room,
// goes alone.
func TestRealBusyRelease(t *testing.T) {
	s := realredis.Start(t)
	c := cluster.Connect(t, []string{s.Addr()}, func(c *redlock.Config) { c.NoHandOver = true; c.MaxWaiting = 1 })
	other := cluster.Connect(t, []string{s.Addr()})
	held := cluster.MustAcquire(t, other, "k", ttl)
	next := testkit.InBackground(func() (redlock.Lock, error) { return c.Acquire(t.Context(), "k", ttl) })
	testkit.Await(t, "in line", func() bool { return c.Stats().InLine == 1 })
	third := testkit.InBackground(func() (redlock.Lock, error) { return c.Acquire(t.Context(), "k", ttl) })
	testkit.Await(t, "in line", func() bool { return c.Stats().InLine == 2 })
	require.NoError(t, held.Release(t.Context()))
	l := testkit.Get(t, next)
	require.NoError(t, l.Err)
	time.Sleep(50 * time.Millisecond)
	require.NoError(t, l.Value.Release(t.Context()))
	testkit.AtOnce(t, func() { require.NoError(t, testkit.Get(t, third).Err) })
}

// TestRealRandInRelease: a panic of Rand, which makes the token of the next holder, leaves the
// lock as it was.
func TestRealRandInRelease(t *testing.T) {
	var broken atomic.Bool
	s := realredis.Start(t)
	c := cluster.Connect(t, []string{s.Addr()}, rarely, func(c *redlock.Config) {
		c.NoHandOver = true
		knobs.Of(c).Rand = readerFunc(func(p []byte) (int, error) {
			if broken.CompareAndSwap(true, false) {
				panic("no randomness")
			}
			return rand.Read(p)
		})
	})
	held := cluster.MustAcquire(t, c, "k", ttl)
	third := testkit.InBackground(func() (redlock.Lock, error) { return c.Acquire(t.Context(), "k", ttl) })
	testkit.Await(t, "in line", func() bool { return c.Stats().InLine == 1 })
	time.Sleep(50 * time.Millisecond)
	broken.Store(true)
	require.ErrorContains(t, testkit.Try(t, "release", func() error { return held.Release(t.Context()) }), "no randomness")
	require.NoError(t, held.Release(t.Context()))
	testkit.AtOnce(t, func() { require.NoError(t, testkit.Get(t, third).Err) })
}

type errContext struct {
	context.Context
	panics *atomic.Bool
}

func (c errContext) Err() error {
	if c.panics.Load() {
		panic("err")
	}
	return c.Context.Err()
}

// TestRealGivesUpAlong: waiters whose contexts end, or panic, while their acquire is under way
// along with a release.
func TestRealGivesUpAlong(t *testing.T) {
	s := realredis.Start(t)
	c := cluster.Connect(t, []string{s.Addr()}, rarely, func(c *redlock.Config) { c.NoHandOver = true })
	var all sync.WaitGroup
	var grants, ended, panicked atomic.Int64
	for i := range 32 {
		all.Add(1)
		go func() {
			defer all.Done()
			for j := range 400 {
				func() {
					var panics atomic.Bool
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+(i*7+j*13)%40)*100*time.Microsecond)
					defer cancel()
					if j%8 == 0 {
						context.AfterFunc(ctx, func() { panics.Store(true) })
					}
					defer func() {
						if recover() != nil {
							panicked.Add(1)
						}
					}()
					l, err := c.Acquire(errContext{ctx, &panics}, "k", ttl)
					if err != nil {
						ended.Add(1)
						return
					}
					grants.Add(1)
					_ = l.Release(t.Context())
				}()
			}
		}()
	}
	testkit.Join(t, &all)
	require.NotZero(t, grants.Load())
	require.NotZero(t, ended.Load())
	require.NotZero(t, panicked.Load())
	require.Zero(t, c.Stats().InLine)
	l, err := c.Acquire(t.Context(), "k", ttl)
	require.NoError(t, err)
	require.NoError(t, l.Release(t.Context()))
}

// TestRealLateComer: a refusal that is old when its caller comes to stand in line does not
// undo what the first has done since: it watches the key.
func TestRealLateComer(t *testing.T) {
	s := realredis.Start(t)
	admin := cluster.NewAdmin(t, s)
	asked, goOn := make(chan struct{}), make(chan struct{})
	var blocks atomic.Bool
	c := cluster.Connect(t, []string{s.Addr()}, rarely, func(c *redlock.Config) {
		c.Hooks.Attempt = func(redlock.Attempt) {
			if blocks.CompareAndSwap(true, false) {
				close(asked)
				<-goOn
			}
		}
	})
	held := cluster.MustAcquire(t, cluster.Connect(t, []string{s.Addr()}), "k", ttl)
	acquire := func() (redlock.Lock, error) { return c.Acquire(t.Context(), "k", ttl) }
	blocks.Store(true)
	late := testkit.InBackground(acquire)
	testkit.Get(t, asked)
	first := testkit.InBackground(acquire)
	awaitTracked(t, admin, "2")
	close(goOn)
	testkit.Await(t, "in line", func() bool { return c.Stats().InLine == 2 })
	require.NoError(t, held.Release(t.Context()))
	testkit.AtOnce(t, func() {
		l := testkit.Get(t, first)
		require.NoError(t, l.Err)
		require.NoError(t, l.Value.Release(t.Context()))
		require.NoError(t, testkit.Get(t, late).Err)
	})
}

// TestRealManyLines: a node that owes little is not cut off by what many lines ask it.
func TestRealManyLines(t *testing.T) {
	for _, limit := range []int{4, 8, 128} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) { manyLines(t, limit) })
	}
}

func manyLines(t *testing.T, limit int) {
	s := realredis.Start(t)
	admin := cluster.NewAdmin(t, s)
	c := cluster.Connect(t, []string{s.Addr()}, func(c *redlock.Config) { knobs.Of(c).MaxInFlight = limit })
	other := cluster.Connect(t, []string{s.Addr()})
	const n = 500
	var held []redlock.Lock
	var all sync.WaitGroup
	for i := range n {
		key := fmt.Sprint("k", i)
		held = append(held, cluster.MustAcquire(t, other, key, ttl))
		all.Add(1)
		go func() {
			defer all.Done()
			l, err := c.Acquire(t.Context(), key, ttl)
			if err == nil {
				err = l.Release(t.Context())
			}
			if err != nil {
				t.Error(err)
			}
		}()
	}
	awaitTracked(t, admin, fmt.Sprint(2*n))
	for _, l := range held {
		l.ReleaseAsync()
	}
	testkit.AtOnce(t, func() { testkit.Join(t, &all) })
	require.EqualValues(t, 1, c.Stats().Nodes[0].Connects)
}

// TestRealRefusedForNow: a node that is out of memory when tracking is switched on is asked
// again.
func TestRealRefusedForNow(t *testing.T) {
	s := realredis.Start(t)
	admin := cluster.NewAdmin(t, s)
	c := cluster.Connect(t, []string{s.Addr()})
	held := cluster.MustAcquire(t, cluster.Connect(t, []string{s.Addr()}), "k", ttl)
	require.Equal(t, "+OK", admin.Do("CONFIG SET maxmemory 1"))
	next := testkit.InBackground(func() (redlock.Lock, error) { return c.Acquire(t.Context(), "k", ttl) })
	testkit.Await(t, "refused", func() bool { // the attempt, and what tries tracking
		refused := admin.Do("INFO errorstats")
		return strings.Contains(refused, "errorstat_OOM:count=") && !strings.Contains(refused, "errorstat_OOM:count=1\r")
	})
	require.Equal(t, "+OK", admin.Do("CONFIG SET maxmemory 0"))
	awaitTracked(t, admin, "2")
	require.NoError(t, held.Release(t.Context()))
	testkit.AtOnce(t, func() { require.NoError(t, testkit.Get(t, next).Err) })
}

// TestRealGivesUpEntering: a waiter that gives up while it enters the queue leaves it, so that
// other processes need not wait for the end of its ticket.
func TestRealGivesUpEntering(t *testing.T) {
	s := realredis.Start(t)
	admin := cluster.NewAdmin(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	var pause func() string
	c := cluster.Connect(t, []string{s.Addr()}, rarely, func(c *redlock.Config) {
		c.Hooks.Attempt = func(redlock.Attempt) { pause() }
	})
	other := cluster.Connect(t, []string{s.Addr()}, rarely)
	cluster.MustAcquire(t, other, "k", ttl)
	cluster.MustAcquire(t, other, "j", ttl)
	go func() { _, _ = other.Acquire(ctx, "j", ttl) }() // has the node load the script
	awaitTracked(t, admin, "2")
	pauser := cluster.NewAdmin(t, s)
	pause = func() string { return pauser.Do("CLIENT PAUSE 300 WRITE") }
	next := testkit.Start(func() error { return errorOf(c.Acquire(ctx, "k", ttl)) })
	testkit.Await(t, "entering", func() bool { return strings.Contains(admin.Do("INFO clients"), "blocked_clients:1") })
	cancel()
	require.ErrorIs(t, testkit.Outcome(t, "the waiter", next), context.Canceled)
	testkit.Await(t, "entered", func() bool { return strings.Contains(admin.Do("INFO clients"), "blocked_clients:0") })
	testkit.AwaitFor(t, testkit.Promptly, "left", func() bool { return admin.Do("EXISTS k:redlock:queue") == ":0" })
}
