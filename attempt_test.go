package redlock_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/fakeredis"
)

// TestFreshTokenForEachAttempt: no two attempts of one Acquire show the same
// token, and all nodes are shown the same one.
func TestFreshTokenForEachAttempt(t *testing.T) {
	onBothPaths(t, func(t *testing.T, portable bool) {
		r := newRig(t, 3, portably(portable))
		for _, s := range r.servers {
			s.Set("k", "another's", 0)
		}
		acquired := inBackground(func() (redlock.Lock, error) { return r.Acquire(t.Context(), "k", ttl) })
		r.awaitAll(t, 20, "SET", "k")
		for _, s := range r.servers {
			s.Del("k")
		}
		got := get(t, acquired)
		require.NoError(t, got.err)

		won := got.lock.Token()
		await(t, "the last attempt", func() bool { return len(r.heard[0].all("SET", won)) == 1 })
		seen := map[string]bool{}
		for i, c := range r.heard[0].all("SET", "k") {
			token := c.args[2]
			require.Len(t, token, 22)
			require.False(t, seen[token], "shown twice")
			seen[token] = true
			for _, e := range r.heard {
				await(t, "the same attempt", func() bool { return len(e.all("SET", "k")) > i })
				require.Equal(t, token, e.all("SET", "k")[i].args[2])
			}
		}
		require.True(t, seen[won])
		require.NoError(t, got.lock.Release(t.Context()))
	})
}

// checkCleanedUp waits until every master has heard the SET and, behind it on
// the same connection, the release of the same token, and has no key left.
func (r *rig) checkCleanedUp(t *testing.T, key string) {
	t.Helper()
	r.awaitAll(t, 1, "SET", key)
	r.awaitAll(t, 1, "EVALSHA", key)
	r.awaitEmpty(t)
	for _, e := range r.heard {
		set, release := e.all("SET", key), e.all("EVALSHA", key)
		require.Len(t, set, 1, "nothing is sent twice")
		require.Len(t, release, 1)
		require.Equal(t, set[0].conn, release[0].conn)
		require.False(t, release[0].at.Before(set[0].at))
		require.Contains(t, release[0].args, set[0].args[2], "the token")
	}
}

// TestFailedAttemptsCleanUpBehindThemselves: whatever ends an attempt, the
// release follows its SET to every node, without anybody waiting for it. The
// clock of the masters stands still, so that no key ends by itself.
func TestFailedAttemptsCleanUpBehindThemselves(t *testing.T) {
	still := fakeredis.Options{Now: stopped()}
	onBothPaths(t, func(t *testing.T, portable bool) {
		start := func(t *testing.T, timeout time.Duration) *rig {
			return newRigOf(t, startN(t, 5, still), portably(portable), nodeTimeout(timeout))
		}
		outages := map[string]func(*fakeredis.Server){
			"hung": (*fakeredis.Server).Hang, "deaf": (*fakeredis.Server).HangDeaf, "mute": (*fakeredis.Server).Mute,
		}
		for name, outage := range outages {
			for bad := 3; bad <= 5; bad++ {
				t.Run(fmt.Sprintf("timeout, %d %s", bad, name), func(t *testing.T) {
					r := start(t, 20*time.Millisecond)
					for _, s := range r.servers[:bad] {
						outage(s)
					}
					_, err := r.TryAcquire(t.Context(), "k", ttl)
					require.ErrorIs(t, err, redlock.ErrNoQuorum)
					r.heal(t)
					r.checkCleanedUp(t, "k")
				})
			}
			t.Run("deadline, "+name, func(t *testing.T) {
				r := start(t, patience)
				for _, s := range r.servers {
					outage(s)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
				defer cancel()
				_, err := r.TryAcquire(ctx, "k", ttl)
				require.Equal(t, context.DeadlineExceeded, err)
				r.heal(t)
				r.checkCleanedUp(t, "k")
			})
		}
		t.Run("cancelled", func(t *testing.T) {
			r := start(t, patience)
			for _, s := range r.servers {
				s.Mute()
			}
			ctx, cancel := context.WithCancel(t.Context())
			attempt := inBackground(func() (redlock.Lock, error) { return r.TryAcquire(ctx, "k", ttl) })
			r.awaitAll(t, 1, "SET", "k")
			cancel()
			require.Equal(t, context.Canceled, get(t, attempt).err)
			// The wire is busy with a batch nobody has answered, so the release waits for that.
			r.heal(t)
			r.checkCleanedUp(t, "k")
		})
		t.Run("answers too late", func(t *testing.T) {
			r := start(t, patience)
			for _, s := range r.servers {
				s.Delay(40 * time.Millisecond)
			}
			_, err := r.TryAcquire(t.Context(), "k", 30*time.Millisecond)
			require.Equal(t, redlock.ErrExpired, err)
			r.checkCleanedUp(t, "k")
		})
		t.Run("minority refused", func(t *testing.T) {
			r := start(t, patience)
			for _, s := range r.servers[:3] {
				s.ErrorReply("SET", "OOM command not allowed", 0)
			}
			_, err := r.TryAcquire(t.Context(), "k", ttl)
			require.ErrorIs(t, err, redlock.ErrNoQuorum)
			r.checkCleanedUp(t, "k")
		})
	})
}

// TestLostVoteGivesBackWhatItGot, and leaves the winner's keys alone.
func TestLostVoteGivesBackWhatItGot(t *testing.T) {
	onBothPaths(t, func(t *testing.T, portable bool) {
		r := newRig(t, 5, portably(portable))
		for _, s := range r.servers[:3] {
			s.Set("k", "another's", 0)
		}
		_, err := r.TryAcquire(t.Context(), "k", ttl)
		require.Equal(t, redlock.ErrTaken, err)
		r.awaitAll(t, 1, "EVALSHA", "k")
		await(t, "ours given back", func() bool { return r.holders("k") == 3 })
		for _, s := range r.servers[:3] {
			v, _ := s.Get("k")
			require.Equal(t, "another's", v)
		}
	})
}

// TestNothingToCleanUp: where every node has denied, no release is sent.
func TestNothingToCleanUp(t *testing.T) {
	r := newRig(t, 1)
	r.servers[0].Set("k", "another's", 0)
	for range 10 {
		_, err := r.TryAcquire(t.Context(), "k", ttl)
		require.Equal(t, redlock.ErrTaken, err)
	}
	require.NoError(t, mustAcquire(t, r.Client, "behind", ttl).Release(t.Context()))
	require.Empty(t, r.heard[0].all("EVALSHA", "k"))
}

// TestLateReplyIsNobodyElses: the grant for a request that was given up on
// arrives when another waits for its own answer, which is a denial.
func TestLateReplyIsNobodyElses(t *testing.T) {
	onBothPaths(t, func(t *testing.T, portable bool) {
		r := newRig(t, 1, portably(portable), nodeTimeout(5*time.Millisecond))
		r.servers[0].Set("taken", "another's", 0)
		for i := range 20 {
			r.servers[0].Mute()
			_, err := r.TryAcquire(t.Context(), fmt.Sprint("free ", i), ttl)
			require.ErrorIs(t, err, redlock.ErrNoQuorum)
			r.heal(t)
			await(t, "an answer", func() bool {
				_, err := r.TryAcquire(t.Context(), "taken", ttl)
				if !isOneOf(err, redlock.ErrNoQuorum) {
					require.Equal(t, redlock.ErrTaken, err)
				}
				return err == redlock.ErrTaken
			})
		}
		await(t, "only the other's key", func() bool { return r.servers[0].Len() == 1 })
	})
}

// TestNothingIsSentTwice, however often connections break: no node hears a
// token in two SETs, nor a SET behind the release of its token.
func TestNothingIsSentTwice(t *testing.T) {
	onBothPaths(t, func(t *testing.T, portable bool) {
		r := newRig(t, 3, portably(portable), nodeTimeout(time.Second))
		done := make(chan struct{})
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for i := 0; ; i++ {
					select {
					case <-done:
						return
					default:
					}
					if l, err := r.TryAcquire(context.Background(), fmt.Sprint(g, "/", i), ttl); err == nil {
						_ = l.Release(context.Background())
					}
				}
			}()
		}
		rng := rand.New(rand.NewPCG(1, 2))
		for i := range 50 {
			e := r.heard[rng.IntN(3)]
			e.await(t, i*10)
			r.servers[rng.IntN(3)].ResetConns()
		}
		close(done)
		wg.Wait()
		for _, e := range r.heard {
			e.mu.Lock()
			shown := map[string]bool{}
			released := map[string]bool{}
			for _, c := range e.calls {
				switch c.args[0] {
				case "SET":
					require.False(t, shown[c.args[2]], "SET twice")
					require.False(t, released[c.args[2]], "SET behind its release")
					shown[c.args[2]] = true
				case "EVALSHA":
					for _, token := range c.args[3+len(c.args[3:])/2:] {
						released[token] = true
					}
				}
			}
			e.mu.Unlock()
		}
	})
}

// await waits until a master has heard so many SETs.
func (e *ear) await(t *testing.T, n int) {
	t.Helper()
	await(t, "commands", func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		sets := 0
		for c := range slices.Values(e.calls) {
			if c.args[0] == "SET" {
				sets++
			}
		}
		return sets >= n
	})
}
