package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// TestDo: the function runs with the lock. The lock is released in every case, and the function's
// error comes joined with the cause of a loss.
func TestDo(t *testing.T) { testDo(t, (*redlock.Client).Do) }

// TestTryDo: the same with one attempt. The function is not called where the lock is taken, or
// where others wait for it.
func TestTryDo(t *testing.T) {
	testDo(t, (*redlock.Client).TryDo)
	cluster.On(t, 3, func(t *testing.T, r *cluster.Cluster) {
		l := cluster.MustAcquire(t, r.Client, "k", ttl)
		f := func(context.Context) error {
			t.Error("it was called")
			return nil
		}
		require.Equal(t, redlock.ErrTaken, r.TryDo(t.Context(), "k", ttl, f))
		require.EqualValues(t, 1, r.Stats().Acquire.Denied, "one attempt")
		next := inLine(t, r.Client, t.Context(), "k", 1)
		require.Equal(t, redlock.ErrTaken, r.TryDo(t.Context(), "k", ttl, f))
		require.NoError(t, l.Release(t.Context()))
		got := locked(t, next)
		require.NoError(t, got.Release(t.Context()))
	})
}

// TestDoAll: the same for several keys; a key named twice is one.
func TestDoAll(t *testing.T) {
	testDo(t, func(c *redlock.Client, ctx context.Context, key string, ttl time.Duration, f func(context.Context) error) error {
		return c.DoAll(ctx, ttl, []string{key, "other", key}, f)
	})
}

// TestDoWithinItsOwnLock: it would wait for its own caller, so it fails at once.
func TestDoWithinItsOwnLock(t *testing.T) {
	cluster.On(t, 3, func(t *testing.T, r *cluster.Cluster) {
		other := cluster.Connect(t, fakeredis.Addrs(r.Servers))
		require.NoError(t, r.DoAll(t.Context(), ttl, []string{"a", "b"}, func(ctx context.Context) error {
			return r.Do(ctx, "c", ttl, func(ctx context.Context) error {
				ctx, cancel := context.WithCancel(ctx)
				defer cancel()
				for _, key := range []string{"a", "b", "c"} {
					err := r.Do(ctx, key, ttl, nothing)
					require.ErrorIs(t, err, redlock.ErrArgument)
					require.ErrorContains(t, err, "Do of \""+key+"\" was called with the context of a lock on it")
					require.ErrorIs(t, r.TryDo(ctx, key, ttl, nothing), redlock.ErrArgument)
					require.ErrorIs(t, r.DoAll(ctx, ttl, []string{"x", key}, nothing), redlock.ErrArgument)
					require.Equal(t, redlock.ErrTaken, other.TryDo(ctx, key, ttl, nothing), "another client waits for this one")
				}
				return r.Do(ctx, "d", ttl, nothing)
			})
		}))
		var late context.Context
		require.NoError(t, r.Do(t.Context(), "a", ttl, func(ctx context.Context) error { late = context.WithoutCancel(ctx); return nil }))
		require.NoError(t, r.Do(late, "a", ttl, nothing), "it is held no more")
	})
}

// TestHeldCounts the locks with validity left, unreleased ones too.
func TestHeldCounts(t *testing.T) {
	cluster.On(t, 3, func(t *testing.T, r *cluster.Cluster) {
		require.Zero(t, r.Stats().Held)
		long, short := cluster.MustAcquire(t, r.Client, "long", time.Hour), cluster.MustAcquire(t, r.Client, "short", ttl)
		for i := range 100 {
			cluster.MustAcquire(t, r.Client, fmt.Sprint("left ", i), 2*ttl)
		}
		require.Equal(t, 102, r.Stats().Held)
		require.NoError(t, short.Extend(t.Context(), time.Hour))
		require.Equal(t, 102, r.Stats().Held)
		time.Sleep(2*ttl + 300*time.Millisecond)
		require.Equal(t, 2, r.Stats().Held)
		for i := range 3 { // instants that share a cell
			cluster.MustAcquire(t, r.Client, fmt.Sprint("far ", i), time.Hour+time.Duration(i)*1024<<27)
		}
		require.Equal(t, 5, r.Stats().Held)
		require.NoError(t, long.Release(t.Context()))
		short.ReleaseAsync()
		require.Equal(t, 3, r.Stats().Held)
		time.Sleep(2 * time.Hour)
		require.Zero(t, r.Stats().Held)
	})
}

func testDo(t *testing.T, do func(*redlock.Client, context.Context, string, time.Duration, func(context.Context) error) error) {
	own := errors.New("the function's own")
	type doing struct {
		*cluster.Cluster
		ctx    context.Context
		cancel context.CancelCauseFunc // of the caller's
	}
	for name, c := range map[string]struct {
		f       func(t *testing.T, d doing) error
		errs    []error // wrapped by the result; none: nil
		not     []error // not wrapped by it
		lost    bool
		panics  bool
		goexits bool
	}{
		"well": {f: func(t *testing.T, d doing) error {
			time.Sleep(2 * brief)
			require.Equal(t, 3, d.Holders("k"))
			return d.ctx.Err()
		}},
		"error":  {f: func(*testing.T, doing) error { return own }, errs: []error{own}, not: []error{redlock.ErrNotHeld, redlock.ErrStopped}},
		"panic":  {f: func(*testing.T, doing) error { panic(own) }, panics: true},
		"goexit": {f: func(*testing.T, doing) error { runtime.Goexit(); return nil }, goexits: true},
		"caller gives up": {f: func(t *testing.T, d doing) error {
			d.cancel(manyErrors{own})
			testkit.Get(t, d.ctx.Done())
			return d.ctx.Err()
		}, errs: []error{context.Canceled}, not: []error{redlock.ErrStopped, redlock.ErrNotHeld, redlock.ErrExpired}},
		"lost": {f: func(t *testing.T, d doing) error {
			d.Servers.Del("k")
			testkit.Get(t, d.ctx.Done())
			return own
		}, errs: []error{own, redlock.ErrNotHeld}, lost: true},
		"lost, and not noticed": {f: func(t *testing.T, d doing) error { d.Servers.Del("k"); return nil }}, // the release is not waited for
		"out of reach": {f: func(t *testing.T, d doing) error {
			d.Servers.Mute()
			testkit.Get(t, d.ctx.Done())
			require.NoError(t, d.Servers.Heal())
			return d.ctx.Err()
		}, errs: []error{context.Canceled, redlock.ErrNoQuorum}, not: []error{redlock.ErrNotHeld}, lost: true},
		"closed": {f: func(t *testing.T, d doing) error { return d.Close() }, errs: []error{redlock.ErrClosed}, lost: true},
	} {
		cluster.Run(t, name, func(t *testing.T) {
			r := cluster.New(t, 3)
			user, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			var err error
			var panicked any
			returned := false
			testkit.Within(t, testkit.Patience, "Do", func() { // in a goroutine of its own
				defer func() { panicked = recover() }()
				err = do(r.Client, user, "k", brief, func(ctx context.Context) error {
					require.NoError(t, ctx.Err())
					return c.f(t, doing{r, ctx, cancel})
				})
				returned = true
			})
			require.Equal(t, map[bool]any{true: own}[c.panics], panicked)
			require.Equal(t, !c.panics && !c.goexits, returned)
			if returned && len(c.errs) == 0 {
				require.NoError(t, err)
			}
			for _, want := range c.errs {
				require.ErrorIs(t, err, want)
			}
			for _, not := range c.not {
				require.NotErrorIs(t, err, not)
			}
			var lost *redlock.LostError
			require.Equal(t, c.lost, errors.As(err, &lost))
			if c.lost {
				require.Equal(t, "k", lost.Key)
			}
			require.Zero(t, cluster.Stats(t, r.Client).KeptAlive)
			if name != "closed" {
				testkit.AwaitFor(t, brief/2, "the release", func() bool { return r.Holders("k") == 0 })
				require.Zero(t, cluster.Settle(t, r.Client).Held)
			}
		})
	}
}

// TestDoDoesNotWaitForItsRelease: it is on its way when Do returns, later commands on the key come
// after it, and Close sends the rest.
func TestDoDoesNotWaitForItsRelease(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		const trip = 20 * time.Millisecond
		r := cluster.New(t, 3)
		var left time.Time
		for range 2 { // after the other in the queue, since the window is small
			require.NoError(t, r.TryDo(t.Context(), "k", ttl, func(context.Context) error {
				r.Servers.Delay(trip)
				left = time.Now()
				return nil
			}))
			require.Equal(t, left, time.Now())
		}
		require.NoError(t, r.Close())
		r.AwaitEmpty(t)
		require.EqualValues(t, 2, r.Stats().Release.Won)
	})
}

// TestDoSendsItsRelease when it returns: as the last call, also while an operation is under way, since its process may end;
// and beside others, though each was a lone caller.
func TestDoSendsItsRelease(t *testing.T) {
	released := func(t *testing.T, r *cluster.Cluster, f func()) {
		require.NoError(t, r.Do(t.Context(), "k", ttl, func(context.Context) error { f(); return nil }))
		time.Sleep(200 * time.Microsecond)
		require.Zero(t, r.Holders("k"))
	}
	cluster.Run(t, "the last call", func(t *testing.T) {
		r := cluster.New(t, 3)
		other := cluster.MustAcquire(t, r.Client, "other", ttl)
		released(t, r, func() {
			r.Servers.Delay(20 * time.Millisecond)
			go func() { _ = other.Extend(t.Context(), ttl) }()
			time.Sleep(time.Millisecond)
		})
	})
	cluster.Run(t, "beside others", func(t *testing.T) {
		r := cluster.New(t, 3)
		require.NoError(t, r.Do(t.Context(), "other", ttl, func(context.Context) error {
			released(t, r, func() { time.Sleep(6 * time.Millisecond) }) // between two ticks of the watchdog
			return nil
		}))
	})
}

// TestTryDoAgainstOthers: a lock of TryDo that was won while a node had it for another stays for 50 ms after its grant,
// so that this one sees it. Any other ends with the function.
func TestTryDoAgainstOthers(t *testing.T) {
	const ms, stays = time.Millisecond, 50 * time.Millisecond
	others := func(r *cluster.Cluster) { r.Servers[2].Set("k", foreign, 20*ms) }
	noScripts := func(r *cluster.Cluster) { r.Servers.Each((*fakeredis.Server).FlushScripts) }
	for name, c := range map[string]struct {
		flavor fakeredis.Flavor
		change []func(*redlock.Config)
		before func(*cluster.Cluster)
		job    time.Duration
		during func(*cluster.Cluster) // at the end of the job
		after  func(*cluster.Cluster)
		ttl    time.Duration
		want   time.Duration // after the grant all nodes are without the key
	}{
		"alone":                      {job: ms, want: ms},
		"others":                     {before: others, job: ms, want: stays},
		"native releases":            {flavor: fakeredis.Valkey9, before: others, job: ms, want: stays},
		"native releases of 8.4":     {flavor: fakeredis.Redis84, before: others, job: ms, want: stays},
		"no script":                  {before: others, job: ms, during: noScripts, want: stays},
		"no script, native releases": {flavor: fakeredis.Valkey9, before: others, job: ms, during: noScripts, want: stays},
		"fenced":                     {change: []func(*redlock.Config){fenced(0)}, before: others, job: ms, ttl: fenceTTL, want: stays},
		"a long job":                 {before: others, job: 2 * stays, want: 2 * stays},
		"a short TTL":                {before: others, job: ms, ttl: 30 * ms, want: 30*ms - cluster.Drift(30*ms)},
		"a denial after the grant":   {before: func(r *cluster.Cluster) { others(r); r.Servers[2].Delay(10 * ms) }, job: 15 * ms, want: stays},
		"no denial before the end":   {before: func(r *cluster.Cluster) { others(r); r.Servers[2].Delay(20 * ms) }, job: 10 * ms, want: 10 * ms},
		"one node gives no answer":   {before: func(r *cluster.Cluster) { r.Servers[2].Hang() }, job: ms, want: ms},
		"one node is down":           {before: func(r *cluster.Cluster) { r.Servers[2].Down() }, job: ms, want: ms},
		"others for another key":     {before: func(r *cluster.Cluster) { r.Servers[2].Set("j", foreign, time.Hour) }, job: ms, want: ms},
		"a lost lock":                {before: others, job: ms, during: func(r *cluster.Cluster) { r.Servers.Del("k") }, want: ms},
		"a connection ends":          {before: others, job: ms, during: func(r *cluster.Cluster) { r.Servers[0].ResetConns() }, want: stays},
		"a node refuses it once": {before: others, job: ms, during: func(r *cluster.Cluster) { r.Servers[0].ErrorReply("EVALSHA", "ERR not now", 1) },
			want: 250 * ms},
		"Close does not wait": {before: others, job: ms, after: func(r *cluster.Cluster) {
			began := time.Now()
			require.NoError(t, r.Close())
			require.Less(t, time.Since(began), 10*ms)
		}, want: stays},
	} {
		cluster.Run(t, name, func(t *testing.T) {
			r := cluster.Of(t, cluster.Start(t, 3, fakeredis.Options{Flavor: c.flavor}), append(c.change, cluster.NodeTimeout(40*ms))...)
			at := func(step func(*cluster.Cluster)) {
				if step != nil {
					step(r)
				}
			}
			if c.change != nil {
				require.NoError(t, r.InitFencing(t.Context()))
			}
			at(c.before)
			var granted time.Time
			require.NoError(t, r.TryDo(t.Context(), "k", cmp.Or(c.ttl, ttl), func(context.Context) error {
				granted = time.Now()
				time.Sleep(c.job)
				at(c.during)
				return nil
			}))
			at(c.after)
			has := func(s *fakeredis.Server) bool {
				value, ok := s.Get("k")
				return ok && value != foreign
			}
			for _, s := range r.Servers {
				for has(s) && time.Since(granted) < time.Second {
					time.Sleep(ms / 4)
				}
			}
			require.InDelta(t, c.want, time.Since(granted), float64(5*ms))
		})
	}
	cluster.Run(t, "a moving key", func(t *testing.T) {
		servers := cluster.Start(t, 9)
		r := cluster.Of(t, servers, groupsFromTo(servers, 2, 3))
		require.NoError(t, r.Ready(t.Context()))
		key := movingKey(t, 0, 2)
		servers[8].Set(key, foreign, 20*ms)
		require.NoError(t, r.TryDo(t.Context(), key, ttl, func(context.Context) error { time.Sleep(ms); return nil }))
		time.Sleep(stays - 5*ms)
		require.Equal(t, 5, r.Holders(key), "in both of its groups")
		time.Sleep(10 * ms)
		require.Zero(t, r.Holders(key))
	})
	cluster.Run(t, "a caller in line has it at once", func(t *testing.T) {
		r := cluster.New(t, 3)
		others(r)
		var next <-chan testkit.Result[redlock.Lock]
		require.NoError(t, r.TryDo(t.Context(), "k", ttl, func(context.Context) error {
			next = inLine(t, r.Client, t.Context(), "k", 1)
			return nil
		}))
		began := time.Now()
		locked(t, next)
		require.Less(t, time.Since(began), 10*ms)
	})
}

// TestClosedBetweenRounds: a call that pauses between rounds of split votes ends with its client, at once.
func TestClosedBetweenRounds(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		for after := time.Millisecond; after < 40*time.Millisecond; after += 3 * time.Millisecond {
			r := cluster.New(t, 3)
			r.Servers.Delay(10 * time.Millisecond)
			for i, s := range r.Servers[1:] { // the first grants it, each time, and the others show no holder
				s.Set("k", fmt.Sprint(foreign, i), time.Hour)
			}
			var ended time.Time
			tried := testkit.Start(func() error {
				err := errorOf(r.TryAcquire(t.Context(), "k", ttl))
				ended = time.Now()
				return err
			})
			time.Sleep(after)
			began := time.Now()
			require.NoError(t, r.Close())
			require.Equal(t, redlock.ErrClosed, testkit.Get(t, tried), "after %v", after)
			require.Less(t, ended.Sub(began), 11*time.Millisecond, "after %v, it awaits no more than what it has asked", after)
		}
	})
}

// TestASplitCallerSeesTheWinner: where a quorum shows one value the lock is taken, after one round.
func TestASplitCallerSeesTheWinner(t *testing.T) {
	for name, silent := range map[string]bool{"all answer": false, "the one without the key is silent from then on": true} {
		cluster.Run(t, name, func(t *testing.T) {
			r := cluster.New(t, 3)
			r.Servers.Delay(time.Millisecond)
			r.Servers[1:].Each(func(s *fakeredis.Server) { s.Set("k", foreign, time.Hour) })
			if silent {
				r.Servers[0].OnCommand(func(_ int64, args []string) {
					if args[0] == "EVALSHA" { // the release of what it has granted
						go r.Servers[0].Hang()
					}
				})
			}
			began := time.Now()
			require.Equal(t, redlock.ErrTaken, errorOf(r.TryAcquire(t.Context(), "k", ttl)))
			require.Less(t, time.Since(began), 30*time.Millisecond)
			require.EqualValues(t, 1, r.Servers[1].Count("SET"))
		})
	}
}
