package grants_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/server/grants"
	"github.com/redlock-go/redlock/internal/test/testkit/virtual"
)

// store is the store of a front end, for the lock "k" of a test.
type store struct {
	*grants.Store
	t *testing.T
}

// in makes a store for masters in virtual time.
func in(w *virtual.World, change ...func(*redlock.Config)) store {
	return store{grants.New(grants.Config{Client: w.Client(change...), MaxTTL: redlock.MaxTTL, NoTTL: 10 * time.Second}), w.T}
}

func (s store) acquire(value string, ttl time.Duration) *grants.Grant {
	g, err := s.Acquire(s.t.Context(), "k", value, ttl)
	require.NoError(s.t, err)
	return g
}

func (s store) extend(want grants.Outcome, by grants.Owner, ttl grants.TTL) {
	outcome, err := s.Extend(s.t.Context(), "k", by, ttl)
	require.NoError(s.t, err)
	require.Equal(s.t, want, outcome, "%v", ttl)
}

func (s store) release(want grants.Outcome, by grants.Owner) {
	outcome, err := s.Release(s.t.Context(), "k", by)
	require.NoError(s.t, err)
	require.Equal(s.t, want, outcome)
}

func (s store) look() grants.State {
	seen, err := s.Look(s.t.Context(), "k")
	require.NoError(s.t, err)
	return seen
}

// TestReleaseWakes: a release through this process wakes the first waiter at once, and no other. A lock that ends by
// its TTL, or through another process, wakes it within a poll.
func TestReleaseWakes(t *testing.T) {
	virtual.Run(t, 3, func(w *virtual.World) {
		s, other := in(w), in(w)
		defer s.Close()
		for _, how := range []struct {
			name    string
			ttl     time.Duration
			release *store
			most    time.Duration
		}{
			{"released here", time.Minute, &s, time.Millisecond},
			{"released elsewhere", time.Minute, &other, time.Second + 60*time.Millisecond},
			{"ended", time.Second, nil, 1100 * time.Millisecond},
		} {
			s.acquire("v", how.ttl)
			ctx, cancel := context.WithCancel(w.T.Context())
			woken := make(chan bool, 2)
			for range cap(woken) {
				go func() {
					free, _ := s.Wait(ctx, "k")
					woken <- free
				}()
			}
			time.Sleep(170 * time.Millisecond)
			require.Empty(t, woken, how.name)
			began := time.Now()
			if how.release != nil {
				how.release.release(grants.Done, grants.By("v"))
				began = time.Now()
			}
			require.True(t, <-woken)
			require.LessOrEqual(t, time.Since(began), how.most, how.name)
			require.Empty(t, woken, how.name)
			cancel()
			<-woken
		}
	})
}

// TestPollBesideRelease: a poll begun before a release, and ended after it, wakes no second one.
func TestPollBesideRelease(t *testing.T) {
	virtual.Run(t, 3, func(w *virtual.World) {
		s := in(w)
		defer s.Close()
		s.acquire("v", time.Minute)
		woken := make(chan bool, 2)
		ctx, cancel := context.WithCancel(w.T.Context())
		go func() { // so the first look meets the release at the nodes
			_, _ = s.Release(w.T.Context(), "k", grants.By("v"))
		}()
		for range cap(woken) {
			go func() {
				free, _ := s.Wait(ctx, "k")
				woken <- free
			}()
		}
		require.True(t, <-woken)
		time.Sleep(40 * time.Millisecond)
		require.Empty(t, woken)
		cancel()
		<-woken
	})
}

// TestPadding: a grant is valid for its client's whole TTL, however long the nodes take. The client
// sees no padding: not when it looks, nor when its time is over.
func TestPadding(t *testing.T) {
	for ttl := time.Millisecond; ttl < 300*24*time.Hour; ttl = ttl*17/16 + time.Millisecond {
		require.InDelta(t, ttl, grants.Shown(grants.Stored(ttl)), float64(10*time.Millisecond), ttl)
		require.LessOrEqual(t, grants.Stored(ttl), ttl+ttl/50+time.Second)
	}
	virtual.Run(t, 3, func(w *virtual.World) {
		s, other := in(w), in(w)
		defer s.Close()
		defer other.Close()
		for _, delay := range []time.Duration{0, 20, 45} {
			w.Servers.Delay(delay * time.Millisecond)
			for _, ttl := range []time.Duration{2 * time.Second, 10 * time.Second, time.Hour} {
				g := s.acquire("v", ttl)
				require.GreaterOrEqual(t, g.Lock.Remaining(), ttl)
				for _, by := range []store{s, other} {
					asked := time.Now()
					seen := by.look()
					require.InDelta(t, ttl, seen.TTL+time.Since(asked), float64(100*time.Millisecond))
				}
				s.extend(grants.Done, grants.By("v"), grants.TTL{Value: 2 * ttl})
				require.GreaterOrEqual(t, g.Lock.Remaining(), 2*ttl)
				time.Sleep(2 * ttl)
				seen := s.look()
				require.False(t, seen.Held)
				s.extend(grants.Absent, grants.By("v"), grants.TTL{Value: ttl})
				s.acquire("w", ttl)
				s.release(grants.Done, grants.By("w"))
			}
		}
	})
}

// TestLate: nodes that stand still for longer than the padding cost time, and no error.
func TestLate(t *testing.T) {
	virtual.Run(t, 3, func(w *virtual.World) {
		s := in(w, func(c *redlock.Config) { c.NodeTimeout = time.Second })
		defer s.Close()
		w.Servers.Delay(400 * time.Millisecond)
		g := s.acquire("v", 5*time.Second)
		require.GreaterOrEqual(t, g.Lock.Remaining(), 5*time.Second)
		for _, short := range []time.Duration{2 * time.Second, 20 * time.Second} {
			s.extend(grants.Done, grants.By("v"), grants.TTL{Value: short})
		}
		require.GreaterOrEqual(t, g.Lock.Remaining(), 20*time.Second)
	})
}

// TestUnknownRelease: a release applied by a quorum, but without an answer in time, counts as a release while the lock
// would be valid, and later no more.
func TestUnknownRelease(t *testing.T) {
	virtual.Run(t, 3, func(w *virtual.World) {
		s := in(w)
		defer s.Close()
		for _, left := range []time.Duration{2 * time.Second, 5 * time.Millisecond} {
			s.acquire("v", 2*time.Second)
			time.Sleep(2*time.Second - left)
			w.Servers[1:].Mute()
			time.AfterFunc(90*time.Millisecond, func() {
				for _, server := range w.Servers[1:] {
					_ = server.Heal()
				}
			})
			outcome, err := s.Release(w.T.Context(), "k", grants.By("v"))
			if left == 2*time.Second {
				require.NoError(t, err)
				require.Equal(t, grants.Done, outcome)
			} else {
				require.ErrorIs(t, err, redlock.ErrNoQuorum)
			}
			time.Sleep(time.Second)
		}
	})
}

// TestShorter: a lock with a new, shorter TTL is free at its end, also for clients of the nodes.
func TestShorter(t *testing.T) {
	virtual.Run(t, 3, func(w *virtual.World) {
		s, other := in(w), w.Client()
		defer s.Close()
		s.acquire("v", time.Minute)
		s.extend(grants.Done, grants.By("v"), grants.TTL{Value: time.Second})
		_, err := other.TryAcquire(w.T.Context(), "k", time.Second)
		require.ErrorIs(t, err, redlock.ErrTaken)
		time.Sleep(time.Second + 10*time.Millisecond)
		_, err = other.TryAcquire(w.T.Context(), "k", time.Second)
		require.NoError(t, err)
	})
}

// TestAddedOften: ten thousand additions to the rest of a TTL add exactly.
func TestAddedOften(t *testing.T) {
	virtual.Run(t, 3, func(w *virtual.World) {
		s := in(w)
		defer s.Close()
		s.acquire("v", 10*time.Second)
		began := time.Now()
		for range 10_000 {
			s.extend(grants.Done, grants.By("v"), grants.TTL{Value: 200 * time.Millisecond, Rest: true})
		}
		seen := s.look()
		require.InDelta(t, 2010*time.Second-time.Since(began), seen.TTL, float64(10*time.Millisecond))
	})
}

// TestConditions: a TTL with a condition is set as on one Redis.
func TestConditions(t *testing.T) {
	virtual.Run(t, 3, func(w *virtual.World) {
		s, kept := in(w), new(grants.Quota)
		defer s.Close()
		for _, c := range []struct {
			condition           string
			longer, shorter, no grants.Outcome
		}{
			{"", grants.Done, grants.Done, grants.Done},
			{"GT", grants.Done, grants.Unchanged, grants.Unchanged},
			{"LT", grants.Unchanged, grants.Done, grants.Done},
			{"NX", grants.Unchanged, grants.Unchanged, grants.Done},
			{"XX", grants.Done, grants.Done, grants.Unchanged},
		} {
			for i, want := range []grants.Outcome{c.longer, c.shorter, c.no} {
				ttl, left := []time.Duration{20, 5, 5}[i]*time.Second, 10*time.Second
				if i == 2 {
					_, err := s.AcquireForever(w.T.Context(), "k", "v", grants.Options{Keep: kept})
					require.NoError(t, err)
				} else {
					s.acquire("v", left)
				}
				s.extend(want, grants.Anyone, grants.TTL{Value: ttl, If: grants.Conditions[c.condition]})
				if want == grants.Done {
					left = ttl
				}
				seen := s.look()
				require.Equal(t, i == 2 && want == grants.Unchanged, seen.Kept)
				if !seen.Kept {
					require.InDelta(t, left, seen.TTL, float64(50*time.Millisecond))
				}
				s.release(grants.Done, grants.Anyone)
			}
		}
	})
}

// TestWaitAsksSeldom: for a lock held by this process the nodes are asked once a second, for another lock four times.
// For many keys at once they are asked some 250 times in all.
func TestWaitAsksSeldom(t *testing.T) {
	virtual.Run(t, 3, func(w *virtual.World) {
		s, other := in(w), in(w)
		defer s.Close()
		var asked atomic.Int64
		w.Servers[0].OnCommand(func(_ int64, args []string) {
			if args[0] == "PTTL" {
				asked.Add(1)
			}
		})
		count := func(by store, keys int) int {
			ctx, cancel := context.WithCancel(w.T.Context())
			var all sync.WaitGroup
			for i := range keys {
				key := fmt.Sprint("k", i)
				_, err := by.Acquire(w.T.Context(), key, "v", time.Minute)
				require.NoError(t, err)
				all.Go(func() { _, _ = s.Wait(ctx, key) })
			}
			time.Sleep(time.Second)
			asked.Store(0)
			time.Sleep(10 * time.Second)
			n := int(asked.Load())
			cancel()
			all.Wait()
			for i := range keys {
				_, err := by.Release(w.T.Context(), fmt.Sprint("k", i), grants.By("v"))
				require.NoError(t, err)
			}
			return n
		}
		require.InDelta(t, 10, count(s, 1), 1)
		require.InDelta(t, 40, count(other, 1), 2)
		require.InDelta(t, 2500, count(other, 500), 300)
	})
}

// TestPlainValues: a value set at the nodes by another library, of any length, is released and extended like a lock of
// one Redis. A value without an expiry is refused, and not reported as "not there".
func TestPlainValues(t *testing.T) {
	virtual.Run(t, 3, func(w *virtual.World) {
		s := in(w)
		defer s.Close()
		set := func(value string, ttl time.Duration) {
			for _, server := range w.Servers {
				server.Set("k", value, ttl)
			}
		}
		set("1", time.Minute)
		s.extend(grants.Done, grants.Anyone, grants.TTL{Value: 2 * time.Minute})
		require.Greater(t, w.Servers[0].TTL("k"), 2*time.Minute)
		_, err := s.Acquire(w.T.Context(), "k", "v", time.Minute)
		require.ErrorIs(t, err, redlock.ErrTaken)
		s.release(grants.Other, grants.By("2"))
		s.release(grants.Done, grants.Anyone)
		time.Sleep(time.Second)
		require.Empty(t, w.Servers[2].Keys())
		set("1", 0)
		_, err = s.Release(w.T.Context(), "k", grants.Anyone)
		require.ErrorIs(t, err, grants.ErrEternal)
	})
}
