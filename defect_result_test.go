package redlock_test

import (
	"context"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
)

// TestDefectEndlessNodeTimeout: the longest timeout there is means to wait.
func TestDefectEndlessNodeTimeout(t *testing.T) {
	for _, timeout := range []time.Duration{math.MaxInt64, math.MaxInt64 / 2, math.MaxInt64 - 1} {
		t.Run(fmt.Sprint(int64(timeout)), func(t *testing.T) {
			onBothPaths(t, func(t *testing.T, portable bool) {
				r := newBoundRig(t, startN(t, 3), portably(portable), nodeTimeout(timeout))
				for _, s := range r.servers {
					s.Delay(30 * time.Millisecond)
				}
				for i := range 3 {
					pair(t, r.Client, fmt.Sprint(i))
				}
				s := statsOf(t, r.Client)
				require.Zero(t, s.Acquire.NoQuorum+s.Release.NoQuorum)
			})
		})
	}
}

// TestDefectCauseOfAnother: each operation of a batch tells the error that the
// node answered to it, not that of another.
func TestDefectCauseOfAnother(t *testing.T) {
	errors := map[string]string{
		"a": "OOM command not allowed when used memory > 'maxmemory'.",
		"b": "MISCONF Redis is configured to save RDB snapshots, but it is unable to persist to disk.",
		"c": "BUSY Redis is busy running a script.",
	}
	for nodes := 1; nodes <= 3; nodes += 2 {
		t.Run(fmt.Sprint(nodes, " nodes"), func(t *testing.T) {
			r := newBoundRig(t, startN(t, nodes))
			unclogged := r.clog(t)
			for _, s := range r.servers {
				s.OnCommand(func(_ int64, args []string) {
					if text := errors[args[1]]; args[0] == "SET" && text != "" {
						s.ErrorReply("SET", text, 1)
					}
				})
			}
			results := map[string]<-chan error{}
			for _, key := range []string{"a", "b", "c"} {
				results[key] = submitted(t, r.Client, noted(key))
			}
			r.heal(t)
			unclogged()
			for _, key := range []string{"a", "b", "c"} {
				err := soon(t, key, results[key])
				var details *redlock.QuorumError
				require.ErrorAs(t, err, &details)
				require.NotEmpty(t, details.Failed)
				for _, f := range details.Failed {
					require.ErrorContains(t, f.Err, errors[key], "of the operation on %s", key)
				}
			}
		})
	}
}

// attempts collects what the Attempt hook hears of acquires, by key, after a
// delay that it makes.
type attempts struct {
	mu    sync.Mutex
	heard map[string]error
	delay time.Duration
}

func (a *attempts) hook(c *redlock.Config) {
	a.heard = map[string]error{}
	c.Hooks.Attempt = func(at redlock.Attempt) {
		if at.Kind == redlock.OpAcquire {
			time.Sleep(a.delay) // it may use up the validity
			a.mu.Lock()
			defer a.mu.Unlock()
			a.heard[at.Key] = at.Err
		}
	}
}

func (a *attempts) of(t *testing.T, key string) error {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	err, found := a.heard[key]
	require.True(t, found, "not heard")
	return err
}

// TestDefectAttemptHearsTheResult: the hook hears the error that the call
// returns, also where the validity ends between the two.
func TestDefectAttemptHearsTheResult(t *testing.T) {
	const short = 50 * time.Millisecond
	t.Run("call", func(t *testing.T) {
		a := attempts{delay: short}
		r := newBoundRig(t, startN(t, 3), a.hook)
		for i := range 5 {
			key := fmt.Sprint(i)
			_, err := r.TryAcquire(t.Context(), key, short)
			require.Equal(t, a.of(t, key), err)
		}
	})
	t.Run("late", func(t *testing.T) {
		var a attempts
		r := newBoundRig(t, startN(t, 3), a.hook)
		for _, s := range r.servers {
			s.Delay(short)
		}
		_, err := r.TryAcquire(t.Context(), "late", short)
		require.Equal(t, redlock.ErrExpired, err)
		require.Equal(t, redlock.ErrExpired, a.of(t, "late"))
	})
	t.Run("op", func(t *testing.T) { // behind another whose Done takes long
		var a attempts
		r := newBoundRig(t, startN(t, 3), a.hook)
		unclogged := r.clog(t)
		slow := noted("slow")
		slow.Done = func(*redlock.Op) { time.Sleep(short) }
		require.NoError(t, r.Submit(slow))
		var results []<-chan error
		for i := range 3 {
			op := noted(fmt.Sprint("op ", i))
			op.TTL = short
			results = append(results, submitted(t, r.Client, op))
		}
		r.heal(t)
		unclogged()
		for i, done := range results {
			err := soon(t, "an op", done)
			require.Equal(t, a.of(t, fmt.Sprint("op ", i)), err)
		}
	})
}

// TestDefectReleasedByMany: of a lock that several goroutines release at once,
// one of them with success, LockLost hears nothing.
func TestDefectReleasedByMany(t *testing.T) {
	onBothPaths(t, func(t *testing.T, portable bool) {
		var y tally
		r := newBoundRig(t, startN(t, 3), portably(portable), listening(&y))
		for i := range 500 {
			l := mustAcquire(t, r.Client, fmt.Sprint(i), ttl)
			const goroutines = 4
			results := make([]<-chan error, goroutines)
			begin := make(chan struct{})
			for g := range results {
				results[g] = start(func() error {
					<-begin
					return l.Release(context.Background())
				})
			}
			close(begin)
			won := 0
			for _, done := range results {
				if err := soon(t, "Release", done); err == nil {
					won++
				} else {
					require.Equal(t, redlock.ErrNotHeld, err)
				}
			}
			require.Equal(t, 1, won)
			require.Empty(t, take(&y, &y.lost), "lock %d was given back", i)
		}
	})
}

// TestDefectCancelOfAnothersOp: a client does not cancel what was submitted to
// another, and neither of them is harmed.
func TestDefectCancelOfAnothersOp(t *testing.T) {
	for _, state := range []string{"queued", "flying"} {
		t.Run(state, func(t *testing.T) {
			apart(t, func(t *testing.T) {
				ours, theirs := newBoundRig(t, startN(t, 3)), newBoundRig(t, startN(t, 3))
				var unclogged []func()
				for _, r := range []*rig{ours, theirs} {
					if state == "queued" {
						unclogged = append(unclogged, r.clog(t))
						continue
					}
					for _, s := range r.servers {
						s.Mute()
					}
				}
				var results []<-chan error
				var ops []*redlock.Op
				for i := range 3 {
					for _, r := range []*rig{ours, theirs} {
						op := noted(fmt.Sprint("op ", i))
						results = append(results, submitted(t, r.Client, op))
						ops = append(ops, op)
					}
				}
				for i, op := range ops {
					other := theirs
					if i%2 == 1 {
						other = ours
					}
					require.False(t, other.Cancel(op), "operation %d is not its own", i)
				}
				ours.heal(t)
				theirs.heal(t)
				for _, f := range unclogged {
					f()
				}
				for _, done := range results {
					require.NoError(t, soon(t, "an operation", done))
				}
				for _, r := range []*rig{ours, theirs} {
					pair(t, r.Client, "behind")
					require.Zero(t, quiet(t, r.Client).Waiting)
					for i := range 3 {
						require.Equal(t, 3, r.holders(fmt.Sprint("op ", i)))
					}
				}
			})
		})
	}
}
