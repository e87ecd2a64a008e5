package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/conn"
)

// tally is what hooks heard, in numbers and in full.
type tally struct {
	mu       sync.Mutex
	kinds    [4]redlock.Results
	maybe    uint64
	votes    [8][3]uint64
	attempts []redlock.Attempt
	failed   []redlock.Vote
	nodes    []redlock.Node
	lost     []string
}

func (y *tally) count(kind redlock.OpKind, err error) {
	r := &y.kinds[kind]
	switch {
	case err == nil:
		r.Won++
	case isOneOf(err, redlock.ErrTaken, redlock.ErrNotHeld):
		r.Denied++
	case isOneOf(err, redlock.ErrNoQuorum):
		r.NoQuorum++
	case isOneOf(err, redlock.ErrExpired):
		r.Expired++
	case isOneOf(err, context.Canceled, context.DeadlineExceeded):
		r.Cancelled++
	case isOneOf(err, redlock.ErrBusy, redlock.ErrClosed):
		r.Refused++
	}
}

func (y *tally) hooks() redlock.Hooks {
	locked := func(f func()) {
		y.mu.Lock()
		defer y.mu.Unlock()
		f()
	}
	node := func(n redlock.Node) { locked(func() { y.nodes = append(y.nodes, n) }) }
	return redlock.Hooks{
		Attempt: func(a redlock.Attempt) {
			locked(func() { y.count(a.Kind, a.Err); y.attempts = append(y.attempts, a) })
		},
		Vote: func(v redlock.Vote) {
			locked(func() {
				y.votes[v.Node][v.Outcome-redlock.Granted]++
				if v.Err != nil {
					y.failed = append(y.failed, v)
				}
			})
		},
		NodeUp: node, NodeDown: node,
		LockLost: func(key string, err error) {
			locked(func() { y.lost = append(y.lost, fmt.Sprint(key, ": ", err)) })
		},
	}
}

// take returns what was heard since the last time.
func take[T any](y *tally, list *[]T) (l []T) {
	y.mu.Lock()
	defer y.mu.Unlock()
	l, *list = *list, nil
	return l
}

func listening(y *tally) func(*redlock.Config) {
	return func(c *redlock.Config) { c.Hooks = y.hooks() }
}

// TestAttemptIsHeard, of blocking calls and of an Op, with its votes, before
// the call returns.
func TestAttemptIsHeard(t *testing.T) {
	onBothPaths(t, func(t *testing.T, portable bool) {
		var y tally
		r := newRig(t, 1, portably(portable), listening(&y))
		heard := func() redlock.Attempt {
			t.Helper()
			l := take(&y, &y.attempts)
			require.Len(t, l, 1)
			return l[0]
		}
		check := func(a redlock.Attempt, kind redlock.OpKind, votes [3]int, err error) {
			t.Helper()
			require.Equal(t, redlock.Attempt{kind, "k", a.Duration, votes[0], votes[1], votes[2], err}, a)
			require.Positive(t, a.Duration)
			require.Less(t, a.Duration, patience)
		}
		granted, denied, none := [3]int{0: 1}, [3]int{1: 1}, [3]int{}

		l := mustAcquire(t, r.Client, "k", ttl)
		check(heard(), redlock.OpAcquire, granted, nil)
		_, err := r.TryAcquire(t.Context(), "k", ttl)
		check(heard(), redlock.OpAcquire, denied, redlock.ErrTaken)
		require.Equal(t, redlock.ErrTaken, err)
		require.NoError(t, l.Extend(t.Context(), ttl))
		check(heard(), redlock.OpExtend, granted, nil)
		require.NoError(t, l.Release(t.Context()))
		check(heard(), redlock.OpRelease, granted, nil)

		op := &redlock.Op{Kind: redlock.OpAcquire, Key: []byte("k"), TTL: ttl}
		require.NoError(t, submit(t, r.Client, op))
		check(heard(), redlock.OpAcquire, granted, nil)
		op.Kind = redlock.OpRelease
		require.NoError(t, submit(t, r.Client, op))
		check(heard(), redlock.OpRelease, granted, nil)
		require.Equal(t, redlock.ErrNotHeld, submit(t, r.Client, op))
		check(heard(), redlock.OpRelease, denied, redlock.ErrNotHeld)

		r.servers[0].ErrorReply("SET", "OOM command not allowed", 2)
		_, err = r.TryAcquire(t.Context(), "k", ttl)
		a := heard()
		check(a, redlock.OpAcquire, [3]int{2: 1}, err)
		var details *redlock.QuorumError
		require.True(t, errors.As(a.Err, &details))
		op.Kind = redlock.OpAcquire
		require.ErrorIs(t, submit(t, r.Client, op), redlock.ErrNoQuorum)
		require.ErrorAs(t, heard().Err, &details)

		quiet(t, r.Client)
		r.servers[0].Mute()
		require.NoError(t, r.Submit(op))
		require.True(t, r.Cancel(op))
		check(heard(), redlock.OpAcquire, none, context.Canceled)
		require.False(t, r.Cancel(op))
		ctx, cancel := context.WithCancel(t.Context())
		lost := inBackground(func() (redlock.Lock, error) { return r.TryAcquire(ctx, "k", ttl) })
		await(t, "under way", func() bool { s := r.Stats(); return s.Waiting+s.InFlight >= 3 })
		cancel()
		require.Equal(t, context.Canceled, get(t, lost).err)
		check(heard(), redlock.OpAcquire, none, context.Canceled)
		require.NoError(t, r.servers[0].Heal())

		for range 2 { // what was no attempt
			_, err = r.TryAcquire(ctx, "k", ttl)
			require.Error(t, err)
			_, err = r.TryAcquire(t.Context(), "", ttl)
			require.Error(t, err)
			require.Error(t, submitRefused(r.Client, ""))
			require.Equal(t, redlock.ErrNotHeld, l.Release(t.Context()))
		}
		require.Empty(t, take(&y, &y.attempts))
		require.NoError(t, r.Close())
		require.Equal(t, redlock.ErrClosed, submitRefused(r.Client, "k"))
		check(heard(), redlock.OpAcquire, none, redlock.ErrClosed)
		_, err = r.Acquire(t.Context(), "k", ttl)
		require.Equal(t, redlock.ErrClosed, err)
		check(heard(), redlock.OpAcquire, none, redlock.ErrClosed)
	})
}

// TestNodeThatDiesIsHeard: its votes, its end and its return, in the hooks and
// in the log, once each, and nothing when the client is closed.
func TestNodeThatDiesIsHeard(t *testing.T) {
	onBothPaths(t, func(t *testing.T, portable bool) {
		var y tally
		var log page
		servers := startN(t, 3)
		servers[2].Down() // from the start
		r := newRigOf(t, servers, portably(portable), listening(&y), func(c *redlock.Config) {
			c.Logger = slog.New(slog.NewTextHandler(&log, nil))
		})
		expect := func(want ...string) {
			t.Helper()
			var all []string
			await(t, strings.Join(want, ", "), func() bool {
				for _, n := range take(&y, &y.nodes) {
					require.Equal(t, r.servers[n.Index].Addr(), n.Addr)
					require.Equal(t, n.Up, n.Err == nil)
					all = append(all, fmt.Sprint(n.Index, " ", n.Up, " ", n.Connects))
				}
				return len(all) >= len(want)
			})
			slices.Sort(all)
			require.Equal(t, want, all)
		}
		expect("0 true 1", "1 true 1", "2 false 0")
		require.Contains(t, log.String(), fmt.Sprintf("level=INFO msg=\"redlock: node is up\" node=%s server=", servers[0].Addr()))
		require.Contains(t, log.String(), fmt.Sprintf("level=WARN msg=\"redlock: node is down\" node=%s error=", servers[2].Addr()))
		require.NoError(t, servers[2].Heal())
		expect("2 true 1")

		servers[0].Mute()
		mustAcquire(t, r.Client, "k", ttl) // of the other two
		servers[0].Down()
		expect("0 false 1")
		failed := take(&y, &y.failed)
		require.Len(t, failed, 1)
		require.Equal(t, redlock.OpAcquire, failed[0].Kind)
		require.Equal(t, 0, failed[0].Node)
		require.NotErrorIs(t, failed[0].Err, conn.ErrNotSent)
		require.NoError(t, r.Close())
		require.Empty(t, take(&y, &y.nodes), "that is no news")
		require.Equal(t, 5, strings.Count(log.String(), "\n"))
	})
}

// TestVotesThatFailAreHeard, with the reason.
func TestVotesThatFailAreHeard(t *testing.T) {
	var y tally
	r := newRig(t, 3, listening(&y))
	r.servers[0].Down()
	await(t, "down", func() bool { return !r.Nodes()[0].Up })
	r.servers[1].ErrorReply("EVALSHA", "BUSY Redis is busy running a script.", 1)
	l := mustAcquire(t, r.Client, "k", ttl)
	require.ErrorIs(t, l.Release(t.Context()), redlock.ErrNoQuorum)
	var failed []redlock.Vote
	await(t, "three votes", func() bool {
		failed = append(failed, take(&y, &y.failed)...)
		return len(failed) >= 3
	})
	require.Len(t, failed, 3)
	for i, want := range []struct {
		kind redlock.OpKind
		node int
		err  string
	}{{redlock.OpAcquire, 0, ""}, {redlock.OpRelease, 0, ""}, {redlock.OpRelease, 1, "BUSY"}} {
		v := failed[i]
		require.Equal(t, redlock.Vote{want.kind, want.node, r.servers[want.node].Addr(), redlock.Failed, v.Err}, v)
		require.ErrorContains(t, v.Err, want.err)
	}
}

// TestLockLostIsHeardOnce, by whatever finds it out first, and not of a lock
// that was given back.
func TestLockLostIsHeardOnce(t *testing.T) {
	onBothPaths(t, func(t *testing.T, portable bool) {
		var y tally
		r := newRig(t, 1, portably(portable), listening(&y))
		heard := func(want ...error) {
			t.Helper()
			var texts []string
			for _, err := range want {
				texts = append(texts, fmt.Sprint("k: ", err))
			}
			require.Equal(t, texts, take(&y, &y.lost))
		}
		l := mustAcquire(t, r.Client, "k", ttl)
		r.servers[0].Del("k")
		require.Equal(t, redlock.ErrNotHeld, l.Extend(t.Context(), ttl))
		heard(redlock.ErrNotHeld)
		require.Equal(t, redlock.ErrExpired, l.Extend(t.Context(), ttl))
		require.Equal(t, redlock.ErrNotHeld, l.Release(t.Context()))
		heard()

		l = mustAcquire(t, r.Client, "k", ttl)
		r.servers[0].Del("k")
		require.Equal(t, redlock.ErrNotHeld, l.Release(t.Context()))
		heard(redlock.ErrNotHeld)
		require.Equal(t, redlock.ErrNotHeld, l.Release(t.Context()), "a dead handle")
		heard()

		l, err := r.Acquire(t.Context(), "k", 100*time.Millisecond)
		require.NoError(t, err)
		await(t, "expired", func() bool { return l.Remaining() == 0 })
		require.Equal(t, redlock.ErrExpired, l.Extend(t.Context(), ttl))
		heard(redlock.ErrExpired)
		_ = l.Release(t.Context())
		heard()

		l = mustAcquire(t, r.Client, "k", ttl)
		require.NoError(t, l.Extend(t.Context(), ttl))
		require.NoError(t, l.Release(t.Context()))
		heard()

		// What a release that nobody waited for deleted was not lost.
		l = mustAcquire(t, r.Client, "k", ttl)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		r.servers[0].Mute()
		require.Equal(t, context.Canceled, l.Release(ended))
		r.awaitEmpty(t)
		require.NoError(t, r.servers[0].Heal())
		require.Equal(t, redlock.ErrNotHeld, l.Extend(t.Context(), ttl))
		require.Equal(t, redlock.ErrNotHeld, l.Release(t.Context()))
		heard()
	})
}

// TestARefusedReleaseGaveNothingBack: one that finds the lock gone later tells.
func TestARefusedReleaseGaveNothingBack(t *testing.T) {
	var y tally
	r := newRig(t, 1, listening(&y), func(c *redlock.Config) { c.MaxWaiting = 1 })
	l := mustAcquire(t, r.Client, "k", ttl)
	r.servers[0].Mute()
	// One waits, and as many are on their way as the last round trip allowed.
	done := make(chan error, 100)
	sent := 0
	for seen := 0; seen < 2; seen++ { // what waits at the first look may be sent behind it
		for ; r.Stats().Waiting == 0; sent++ {
			op := &redlock.Op{Kind: redlock.OpRelease, Key: []byte("other"), Done: func(op *redlock.Op) { done <- op.Err() }}
			require.NoError(t, r.Submit(op))
		}
	}
	require.Equal(t, redlock.ErrBusy, l.Release(t.Context()))
	require.Equal(t, redlock.ErrBusy, l.Extend(t.Context(), ttl))
	require.EqualValues(t, 1, r.Stats().Release.Refused)
	require.EqualValues(t, 1, r.Stats().Extend.Refused)
	require.NoError(t, r.servers[0].Heal())
	for range sent {
		require.Equal(t, redlock.ErrNotHeld, get(t, done))
	}
	r.servers[0].Del("k")
	require.Equal(t, redlock.ErrNotHeld, l.Release(t.Context()))
	require.Equal(t, []string{fmt.Sprint("k: ", redlock.ErrNotHeld)}, take(&y, &y.lost))
}
