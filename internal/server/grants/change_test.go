package grants_test

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/server/grants"
	"github.com/redlock-go/redlock/internal/test/testkit/virtual"
)

// TestReleasesAreJoined: among several releases of one lock at once, one releases it, and none releases the next
// holder's.
func TestReleasesAreJoined(t *testing.T) {
	virtual.Run(t, 3, func(w *virtual.World) {
		s := in(w)
		defer s.Close()
		w.Servers.Delay(5 * time.Millisecond)
		for round := range 20 {
			s.acquire("v", 10*time.Second)
			var released atomic.Int32
			var all sync.WaitGroup
			for i := range 5 {
				all.Go(func() {
					time.Sleep(time.Duration(i) * time.Millisecond)
					outcome, err := s.Release(w.T.Context(), "k", grants.Anyone)
					require.NoError(t, err)
					if outcome == grants.Done {
						released.Add(1)
					}
				})
			}
			time.Sleep(2500 * time.Microsecond)
			next, err := s.Acquire(w.T.Context(), "k", "w", time.Minute) // behind the release
			require.NoError(t, err, round)
			all.Wait()
			require.EqualValues(t, 1, released.Load())
			require.Positive(t, next.Lock.Remaining())
			require.Equal(t, "w", s.look().Value)
			s.release(grants.Done, grants.By("w"))
		}
	})
}

// TestExtendedElsewhere: a lock extended through another front end has not ended with the time known here.
func TestExtendedElsewhere(t *testing.T) {
	virtual.Run(t, 3, func(w *virtual.World) {
		s, other := in(w), in(w)
		defer s.Close()
		defer other.Close()
		s.acquire("v", 2*time.Second)
		time.Sleep(time.Second)
		other.extend(grants.Done, grants.By("v"), grants.TTL{Value: 4 * time.Second})
		for range 3 {
			require.InDelta(t, 4*time.Second, s.look().TTL, float64(300*time.Millisecond))
		}
		time.Sleep(2 * time.Second)
		_, err := s.Acquire(w.T.Context(), "k", "w", time.Second)
		require.ErrorIs(t, err, redlock.ErrTaken)
		s.extend(grants.Done, grants.By("v"), grants.TTL{Value: time.Second}) // shortened here, and extended there
		other.extend(grants.Done, grants.By("v"), grants.TTL{Value: 10 * time.Second})
		time.Sleep(3 * time.Second)
		other.release(grants.Done, grants.By("v"))
	})
}

// TestExtendedTooLate: an extension answered after a client has learned of the lock's end does not count.
func TestExtendedTooLate(t *testing.T) {
	virtual.Run(t, 3, func(w *virtual.World) {
		s := in(w)
		defer s.Close()
		s.acquire("v", time.Second)
		time.Sleep(time.Second - 5*time.Millisecond)
		w.Servers.Delay(20 * time.Millisecond)
		var outcome grants.Outcome
		var all sync.WaitGroup
		all.Go(func() { outcome, _ = s.Extend(w.T.Context(), "k", grants.By("v"), grants.TTL{Value: time.Minute}) })
		seen := s.look() // asked before, answered after the end
		all.Wait()
		require.Equal(t, seen.Held, outcome == grants.Done)
		s.Acquire(w.T.Context(), "k", "w", time.Second)
		require.Equal(t, seen.Held, s.look().Value == "v")
	})
}

// TestRemainsOfSomeNodes: a lock whose time is over ends at the nodes one after another. While two of four still have
// it, the next client gets its lock, not the error of a release without a quorum.
func TestRemainsOfSomeNodes(t *testing.T) {
	virtual.Run(t, 5, func(w *virtual.World) {
		s := in(w)
		defer s.Close()
		s.acquire("v", 400*time.Millisecond)
		w.Servers[4].Down()
		for _, server := range w.Servers[2:4] {
			server.OnCommand(func(_ int64, args []string) {
				if strings.HasPrefix(args[0], "EVAL") || strings.HasPrefix(args[0], "DEL") { // the release
					server.Del("k")
				}
			})
		}
		time.Sleep(400 * time.Millisecond)
		s.acquire("w", time.Second)
	})
}

// TestBesideAStaleGrant: a front end knows an old grant of a lock that another has released and granted anew. Of two
// changes at once the second finds the present lock, like the first.
func TestBesideAStaleGrant(t *testing.T) {
	virtual.Run(t, 3, func(w *virtual.World) {
		s, other := in(w), in(w)
		defer s.Close()
		defer other.Close()
		s.acquire("v", 10*time.Second)
		other.release(grants.Done, grants.By("v"))
		other.acquire("v", 10*time.Second)
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() { s.extend(grants.Done, grants.Anyone, grants.TTL{Value: 5 * time.Second}) })
		}
		all.Wait()
	})
}
