package grants_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/server/grants"
	"github.com/redlock-go/redlock/internal/test/testkit/virtual"
)

// share acquires a share for v.
func (s store) share(o grants.Options) *grants.Share {
	x, err := s.AcquireShared(s.t.Context(), "k", "v", time.Minute, o)
	require.NoError(s.t, err)
	return x
}

// TestSharesEnd: a share ends at the nodes with the time of its client, also after the client has shortened it.
func TestSharesEnd(t *testing.T) {
	var q grants.Quota
	for name, o := range map[string]grants.Options{"usual": {}, "kept": {Keep: &q}} {
		for _, ttl := range []time.Duration{time.Minute, time.Second, 2 * time.Minute} {
			if o.Keep != nil && ttl == time.Minute {
				continue // no TTL ends it
			}
			t.Run(name+ttl.String(), func(t *testing.T) {
				virtual.Run(t, 3, func(w *virtual.World) {
					s := in(w)
					defer s.Close()
					s.share(o)
					if ttl != time.Minute {
						outcome, ok, err := s.ExtendShare(w.T.Context(), "k", "v", ttl)
						require.NoError(t, err)
						require.True(t, ok)
						require.Equal(t, grants.Done, outcome)
					}
					time.Sleep(ttl - 100*time.Millisecond)
					_, err := s.Acquire(w.T.Context(), "k", "w", time.Second)
					require.ErrorIs(t, err, redlock.ErrTaken)
					time.Sleep(200 * time.Millisecond)
					s.acquire("w", time.Second)
				})
			})
		}
	}
}

// TestBrokenShares: an operator deletes the key. Its client may share it again, or release its next lock by the same value.
func TestBrokenShares(t *testing.T) {
	virtual.Run(t, 3, func(w *virtual.World) {
		s := in(w)
		defer s.Close()
		s.share(grants.Options{})
		w.Servers.Del("k")
		s.share(grants.Options{})
		_, err := s.AcquireShared(w.T.Context(), "k", "v", time.Minute, grants.Options{})
		require.ErrorIs(t, err, grants.ErrValueUsed)

		w.Servers.Del("k")
		s.acquire("v", time.Minute)
		_, isShare, err := s.ExtendShare(w.T.Context(), "k", "v", 0)
		require.NoError(t, err)
		require.False(t, isShare)
		s.release(grants.Done, grants.By("v"))
	})
}

// TestSharesAreChangedAtOnce, with the race detector: a share kept alive gets an expiry while it is granted.
func TestSharesAreChangedAtOnce(t *testing.T) {
	virtual.Run(t, 3, func(w *virtual.World) {
		s := in(w)
		defer s.Close()
		var q grants.Quota
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			for {
				select {
				case <-stop:
					return
				case <-time.After(time.Microsecond):
					_, _, _ = s.ExtendShare(w.T.Context(), "k", "v", time.Minute)
				}
			}
		}()
		for range 30 {
			x := s.share(grants.Options{Keep: &q})
			time.Sleep(time.Millisecond)
			x.Drop()
			time.Sleep(10 * time.Millisecond)
		}
		close(stop)
		<-stopped
	})
}

// TestHeldOfOthers: the shown state of a lock kept alive, and of a lock granted by another front end.
func TestHeldOfOthers(t *testing.T) {
	virtual.Run(t, 3, func(w *virtual.World) {
		s, other := in(w), in(w)
		defer s.Close()
		defer other.Close()
		var q grants.Quota
		_, err := other.AcquireWith(w.T.Context(), "k", "v", 2*time.Second, grants.Options{Keep: &q})
		require.NoError(t, err)
		time.Sleep(5 * time.Second)
		held := other.Held(10)
		require.Len(t, held, 1)
		require.Positive(t, held[0].Left)
		other.release(grants.Done, grants.By("v"))
		_, err = other.AcquireWith(w.T.Context(), "k", "v", time.Second, grants.Options{Holder: "app/worker"})
		require.NoError(t, err)
		s.extend(grants.Done, grants.By("v"), grants.TTL{Value: 2 * time.Second})
		held = s.Held(10)
		require.Len(t, held, 1)
		require.Equal(t, "app/worker", held[0].Holder)
	})
}
