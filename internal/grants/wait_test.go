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
	"github.com/redlock-go/redlock/internal/grants"
	"github.com/redlock-go/redlock/internal/testkit/virtual"
)

// in makes a store for masters in virtual time.
func in(w *virtual.World) *grants.Store {
	return grants.New(grants.Config{Client: w.Client(), MaxTTL: redlock.MaxTTL})
}

// TestReleaseWakes: a release through this process wakes the first that waits at once, and no other;
// a lock that ends by its TTL, or through another process, wakes it within a poll.
func TestReleaseWakes(t *testing.T) {
	virtual.Run(t, 3, func(w *virtual.World) {
		s, other := in(w), in(w)
		defer s.Close()
		for _, how := range []struct {
			name    string
			ttl     time.Duration
			release *grants.Store
			most    time.Duration
		}{
			{"released here", time.Minute, s, time.Millisecond},
			{"released elsewhere", time.Minute, other, time.Second + 60*time.Millisecond},
			{"ended", time.Second, nil, 1100 * time.Millisecond},
		} {
			_, err := s.Acquire(w.T.Context(), "k", "v", how.ttl)
			require.NoError(t, err, how.name)
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
				outcome, err := how.release.Release(w.T.Context(), "k", grants.By("v"))
				require.NoError(t, err)
				require.Equal(t, grants.Done, outcome)
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

// TestPadding: what is granted is valid for as long as its client has asked for, also where the
// nodes take nearly all of their time; a grant that came later than the padding is extended.
func TestPadding(t *testing.T) {
	virtual.Run(t, 3, func(w *virtual.World) {
		s := in(w)
		defer s.Close()
		for _, delay := range []time.Duration{0, 20, 45} {
			for _, server := range w.Servers {
				server.Delay(delay * time.Millisecond)
			}
			for _, ttl := range []time.Duration{time.Second, 10 * time.Second, time.Hour} {
				g, err := s.Acquire(w.T.Context(), "k", "v", ttl)
				require.NoError(t, err)
				require.GreaterOrEqual(t, g.Lock.Remaining(), ttl)
				require.Less(t, g.Lock.Remaining(), ttl+60*time.Millisecond)
				outcome, err := s.Extend(w.T.Context(), "k", grants.By("v"), grants.TTL{Value: 2 * ttl})
				require.NoError(t, err)
				require.Equal(t, grants.Done, outcome)
				require.GreaterOrEqual(t, g.Lock.Remaining(), 2*ttl)
				_, err = s.Release(w.T.Context(), "k", grants.By("v"))
				require.NoError(t, err)
			}
		}
	})
}

// TestExtendByWhatIsLeft: a TTL that is added to the rest is computed once, and one that must not
// shorten does not.
func TestExtendByWhatIsLeft(t *testing.T) {
	virtual.Run(t, 3, func(w *virtual.World) {
		s := in(w)
		defer s.Close()
		_, err := s.Acquire(w.T.Context(), "k", "v", 10*time.Second)
		require.NoError(t, err)
		time.Sleep(4 * time.Second)
		outcome, err := s.Extend(w.T.Context(), "k", grants.By("v"), grants.TTL{Value: 10 * time.Second, Rest: true})
		require.NoError(t, err)
		require.Equal(t, grants.Done, outcome)
		seen, err := s.Look(w.T.Context(), "k")
		require.NoError(t, err)
		require.InDelta(t, 16, seen.TTL.Seconds(), 0.2)
		_, err = s.Extend(w.T.Context(), "k", grants.Anyone, grants.TTL{Value: time.Second, Longer: true})
		require.NoError(t, err)
		seen, err = s.Look(w.T.Context(), "k")
		require.NoError(t, err)
		require.InDelta(t, 16, seen.TTL.Seconds(), 0.2)
	})
}

// TestWaitAsksSeldom: while a lock is held that this process granted, the nodes are asked once a second,
// and else four times; also for many keys at once they are asked some 250 times in all.
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
		count := func(by *grants.Store, keys int) int {
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

// TestPlainValues: a value that another library has set at the nodes, of any length, is released and
// extended as a lock of one Redis; one without an expiry is refused, and not "not there".
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
		outcome, err := s.Extend(w.T.Context(), "k", grants.Anyone, grants.TTL{Value: 2 * time.Minute})
		require.NoError(t, err)
		require.Equal(t, grants.Done, outcome)
		require.Greater(t, w.Servers[0].TTL("k"), 2*time.Minute)
		_, err = s.Acquire(w.T.Context(), "k", "v", time.Minute)
		require.ErrorIs(t, err, redlock.ErrTaken)
		outcome, err = s.Release(w.T.Context(), "k", grants.By("2"))
		require.NoError(t, err)
		require.Equal(t, grants.Other, outcome)
		outcome, err = s.Release(w.T.Context(), "k", grants.Anyone)
		require.NoError(t, err)
		require.Equal(t, grants.Done, outcome)
		time.Sleep(time.Second)
		require.Empty(t, w.Servers[2].Keys())
		set("1", 0)
		_, err = s.Release(w.T.Context(), "k", grants.Anyone)
		require.ErrorIs(t, err, grants.ErrEternal)
	})
}
