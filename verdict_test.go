package redlock_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/fakeredis"
)

// TestQuorumIsOfTheConfiguredNodes: with so many of N nodes down, hung or taken
// by somebody else, a lock is won exactly as long as N/2+1 are left.
func TestQuorumIsOfTheConfiguredNodes(t *testing.T) {
	spoil := map[string]func(*fakeredis.Server){
		"down":  (*fakeredis.Server).Down,
		"taken": func(s *fakeredis.Server) { s.Set("k", "another's", 0) },
		"barred": func(s *fakeredis.Server) {
			s.ErrorReply("SET", "OOM command not allowed when used memory > 'maxmemory'.", 0)
		},
	}
	want := map[string]error{"down": redlock.ErrNoQuorum, "taken": redlock.ErrTaken, "barred": redlock.ErrNoQuorum}
	onBothPaths(t, func(t *testing.T, portable bool) {
		for name, harm := range spoil {
			for n := 1; n <= 7; n++ {
				for bad := range n + 1 {
					t.Run(fmt.Sprintf("%d of %d %s", bad, n, name), func(t *testing.T) {
						servers := startN(t, n)
						for _, s := range servers[:bad] {
							harm(s)
						}
						r := newRigOf(t, servers, portably(portable))
						atOnce(t, func() {
							l, err := r.TryAcquire(t.Context(), "k", ttl)
							if n-bad < n/2+1 {
								require.ErrorIs(t, err, want[name])
								return
							}
							require.NoError(t, err)
							require.NoError(t, l.Release(t.Context()))
						})
						for _, s := range servers[bad:] {
							await(t, "empty", func() bool { return s.Len() == 0 })
						}
					})
				}
			}
		}
	})
}

// TestNobodyWaitsForTheSlowest: what a quorum has decided is decided, in both
// directions and for all three operations, while the others hang.
func TestNobodyWaitsForTheSlowest(t *testing.T) {
	onBothPaths(t, func(t *testing.T, portable bool) {
		r := newRig(t, 5, portably(portable))
		for _, s := range r.servers[:3] {
			s.Set("taken", "another's", 0)
		}
		var lost [3]redlock.Lock
		for i := range lost {
			key := fmt.Sprint("lost ", i)
			lost[i] = mustAcquire(t, r.Client, key, ttl)
			for _, s := range r.servers {
				await(t, "set", func() bool { _, ok := s.Get(key); return ok })
			}
			for _, s := range r.servers[:3] {
				s.Del(key)
			}
		}
		r.servers[3].Hang()
		r.servers[4].HangDeaf()

		for _, lost := range lost { // the hung ones owe more each time
			atOnce(t, func() {
				l := mustAcquire(t, r.Client, "k", ttl)
				require.NoError(t, l.Extend(t.Context(), ttl))
				require.NoError(t, l.Release(t.Context()))
				_, err := r.TryAcquire(t.Context(), "taken", ttl)
				require.Equal(t, redlock.ErrTaken, err)
				require.Equal(t, redlock.ErrNotHeld, lost.Extend(t.Context(), ttl))
				require.Equal(t, redlock.ErrNotHeld, lost.Release(t.Context()))
			})
		}
	})
}

// TestLostAsSoonAsQuorumIsImpossible: three refusals of five end the attempt,
// and with two more nodes out of reach three are not even needed of one kind.
func TestLostAsSoonAsQuorumIsImpossible(t *testing.T) {
	taken := func(s *fakeredis.Server) { s.Set("k", "another's", 0) }
	barred := func(s *fakeredis.Server) { s.ErrorReply("SET", "MISCONF Errors writing to the AOF file", 0) }
	cut := func(s *fakeredis.Server) { s.DropConn("SET", 1) }
	hung := (*fakeredis.Server).Hang
	onBothPaths(t, func(t *testing.T, portable bool) {
		for name, c := range map[string]struct {
			harm []func(*fakeredis.Server)
			want error
		}{
			"denied":                {[]func(*fakeredis.Server){taken, taken, taken, hung, hung}, redlock.ErrTaken},
			"refused":               {[]func(*fakeredis.Server){barred, barred, barred, hung, hung}, redlock.ErrNoQuorum},
			"cut off":               {[]func(*fakeredis.Server){cut, cut, cut, hung, hung}, redlock.ErrNoQuorum},
			"denied and refused":    {[]func(*fakeredis.Server){taken, barred, cut, hung, hung}, redlock.ErrTaken},
			"with grants":           {[]func(*fakeredis.Server){taken, barred, taken}, redlock.ErrTaken},
			"more denied than not":  {[]func(*fakeredis.Server){taken, taken, taken, barred, hung}, redlock.ErrTaken},
			"more refused than not": {[]func(*fakeredis.Server){barred, barred, barred, taken, hung}, nil}, // depends on who is first
		} {
			t.Run(name, func(t *testing.T) {
				r := newRig(t, 5, portably(portable))
				for i, harm := range c.harm {
					harm(r.servers[i])
				}
				atOnce(t, func() {
					_, err := r.TryAcquire(t.Context(), "k", ttl)
					require.Error(t, err)
					if c.want != nil {
						require.ErrorIs(t, err, c.want)
					}
				})
			})
		}
	})
}

// TestNodeTimeoutEndsAnAttempt that hung nodes keep open, for all three
// operations.
func TestNodeTimeoutEndsAnAttempt(t *testing.T) {
	onBothPaths(t, func(t *testing.T, portable bool) {
		r := newRig(t, 3, portably(portable), nodeTimeout(150*time.Millisecond))
		l := mustAcquire(t, r.Client, "held", ttl)
		r.servers[0].Hang()
		r.servers[1].Hang()
		_, err := r.TryAcquire(t.Context(), "k", ttl)
		for _, err := range []error{err, l.Extend(t.Context(), ttl), l.Release(t.Context())} {
			var quorum *redlock.QuorumError
			require.ErrorIs(t, err, redlock.ErrNoQuorum)
			require.True(t, errors.As(err, &quorum))
			require.Len(t, quorum.Failed, 2)
			require.Equal(t, 1, quorum.Granted)
			require.ErrorContains(t, quorum.Failed[0].Err, "no answer in time")
		}
		r.heal(t)
		r.awaitEmpty(t)
	})
}

// TestDownNodeCostsNothing: it is a failed vote at once, nothing is kept for
// it, and it takes part again when it is back.
func TestDownNodeCostsNothing(t *testing.T) {
	onBothPaths(t, func(t *testing.T, portable bool) {
		servers := startN(t, 5)
		servers[0].Down()
		servers[1].Down()
		r := newRigOf(t, servers, portably(portable))
		atOnce(t, func() {
			for i := range 50 {
				l := mustAcquire(t, r.Client, fmt.Sprint("early ", i), ttl)
				require.NoError(t, l.Extend(t.Context(), ttl))
				require.NoError(t, l.Release(t.Context()))
			}
		})
		r.heal(t)
		r.awaitUp(t)
		for i := range 50 {
			for _, e := range r.heard[:2] {
				require.Empty(t, e.all("SET", fmt.Sprint("early ", i)))
				require.Empty(t, e.all("EVALSHA", fmt.Sprint("early ", i)))
			}
		}
		for _, s := range r.servers[2:] {
			s.Down()
		}
		await(t, "two nodes of five are no quorum", func() bool {
			_, err := r.TryAcquire(t.Context(), "late", ttl)
			return errors.Is(err, redlock.ErrNoQuorum)
		})
		atOnce(t, func() {
			for range 50 {
				_, err := r.TryAcquire(t.Context(), "late", ttl)
				require.ErrorIs(t, err, redlock.ErrNoQuorum)
			}
		})
	})
}
