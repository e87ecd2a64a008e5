package grants_test

import (
	"context"
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
			{"released elsewhere", time.Minute, other, 60 * time.Millisecond},
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
