package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// work is the function of a call of Do.
type work = func(context.Context) error

// doings is the calls that a lock of "k" is acquired by, and kept alive.
var doings = map[string]func(c *redlock.Client, ctx context.Context, ttl time.Duration, f work) error{
	"Do": func(c *redlock.Client, ctx context.Context, ttl time.Duration, f work) error {
		return c.Do(ctx, "k", ttl, f)
	},
	"DoAll": func(c *redlock.Client, ctx context.Context, ttl time.Duration, f work) error {
		return c.DoAll(ctx, ttl, []string{"j", "k"}, f)
	},
	"DoAny": func(c *redlock.Client, ctx context.Context, ttl time.Duration, f work) error {
		return c.DoAny(ctx, ttl, []string{"k"}, f)
	},
	"TryDo": func(c *redlock.Client, ctx context.Context, ttl time.Duration, f work) error {
		return c.TryDo(ctx, "k", ttl, f)
	},
}

// TestWait: it ends a wait, also for nodes that do not answer, and no work. The error is that of the last attempt, and of no
// context.
func TestWait(t *testing.T) {
	const wait, ms = 300 * time.Millisecond, time.Millisecond
	waits := map[string]func(c *redlock.Client, ctx context.Context, f work) error{
		"Acquire": func(c *redlock.Client, ctx context.Context, _ work) error { return errorOf(c.Acquire(ctx, "k", ttl)) },
		"AcquireAll": func(c *redlock.Client, ctx context.Context, _ work) error {
			return errorOf(c.AcquireAll(ctx, ttl, "a", "k"))
		},
		"AcquireAny": func(c *redlock.Client, ctx context.Context, _ work) error {
			return errorOf(c.AcquireAny(ctx, ttl, "k", "k2"))
		},
	}
	for name, do := range doings {
		if name != "TryDo" {
			waits[name] = func(c *redlock.Client, ctx context.Context, f work) error { return do(c, ctx, ttl, f) }
		}
	}
	taken := func(r *cluster.Cluster) { r.Servers.Take("k"); r.Servers.Take("k2") }
	split := func(r *cluster.Cluster) {
		taken(r)
		r.Servers[0].Del("k", "k2")
		r.Servers[1].Set("k", foreign, 0)
		r.Servers[1].Set("k2", foreign, 0)
	}
	for of, call := range waits {
		for name, c := range map[string]struct {
			before func(r *cluster.Cluster)
			ctx    time.Duration
			last   error // nil: none
			want   time.Duration
		}{
			"taken":                      {before: taken, last: redlock.ErrTaken, want: wait},
			"no node answers":            {before: func(r *cluster.Cluster) { r.Servers.Hang() }, want: wait}, // no claim about the lock
			"split":                      {before: split, last: redlock.ErrTaken, want: wait},
			"split, the context is over": {before: split, ctx: wait / 2, last: redlock.ErrTaken, want: wait / 2},
			"a look of a split caller": {before: func(r *cluster.Cluster) {
				r.Servers.Delay(wait / 2)
				for _, key := range []string{"k", "k2"} {
					r.Servers[1].Set(key, "another's", 0)
					r.Servers[2].Set(key, foreign, 0)
				}
				r.Servers[0].OnCommand(func(_ int64, args []string) {
					if args[0] == "EVALSHA" { // the release of what it has granted: it is silent from then on
						go r.Servers[0].Hang()
					}
				})
			}, want: wait},
			"the context is over": {before: taken, ctx: wait / 2, last: redlock.ErrTaken, want: wait / 2},
			"the context is not":  {before: taken, ctx: wait * 2, last: redlock.ErrTaken, want: wait},
			"work":                {},
		} {
			cluster.Run(t, of+", "+name, func(t *testing.T) {
				r := cluster.New(t, 3, cluster.NodeTimeout(time.Second))
				patient := r.With(redlock.Options{Wait: wait})
				ctx := t.Context()
				if c.ctx > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.ctx)
					defer cancel()
				}
				if c.before == nil {
					require.NoError(t, call(patient, ctx, func(ctx context.Context) error { time.Sleep(10 * wait); return ctx.Err() }))
					return
				}
				c.before(r)
				began := time.Now()
				err := call(patient, ctx, func(context.Context) error { t.Error("it has the lock"); return nil })
				require.InDelta(t, c.want, time.Since(began), float64(6*ms))
				require.NoError(t, r.Servers.Heal())
				gaveUp := testkit.As[*redlock.AcquireError](t, err)
				require.Equal(t, c.last, gaveUp.Last)
				if c.want < wait {
					require.ErrorIs(t, err, context.DeadlineExceeded)
					require.EqualValues(t, 1, r.Stats().Waits.GaveUp)
					return
				}
				require.NoError(t, gaveUp.Ctx)
				require.ErrorContains(t, err, "its limit (Attempts or Wait) is reached")
				if c.last != nil {
					requireOnly(t, err, c.last)
					require.EqualValues(t, 1, r.Stats().Waits.UsedUp)
				}
				require.Zero(t, r.Stats().InLine)
			})
		}
	}
}

// TestWaitIsOfThoseWhoWait: a call of one attempt has none, and a lock passed on in time is had.
func TestWaitIsOfThoseWhoWait(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		r := cluster.New(t, 3)
		c := r.With(redlock.Options{Wait: time.Millisecond})
		r.Servers.Delay(5 * time.Millisecond)
		l := testkit.Must(c.TryAcquire(t.Context(), "k", ttl))(t)
		patient := c.With(redlock.Options{Wait: time.Second}) // in place of the first
		next := inLine(t, patient, t.Context(), "k", 1)
		time.Sleep(time.Second / 2)
		require.NoError(t, l.Release(t.Context()))
		require.NoError(t, locked(t, next).Release(t.Context()))
		require.EqualValues(t, 1, r.Stats().HandedOver)
	})
}

// clusterOf is a cluster of a test.
type clusterOf struct {
	*cluster.Cluster
	t *testing.T
}

// ends ends the client, which waits for no term.
func (c *clusterOf) ends(end func() error) {
	began := time.Now()
	require.NoError(c.t, end())
	require.Less(c.t, time.Since(began), 10*time.Millisecond)
}

// TestAtLeast: a lock of Do is free at the end of its term, not before and not much later, through all that may happen meanwhile.
func TestAtLeast(t *testing.T) {
	const ms, atLeast, short = time.Millisecond, 5 * time.Second, 200 * time.Millisecond
	const crashed = 2 * 60 * ms // longer at most, where the process has not released it
	own := errors.New("the function's own")
	suspend := func(d *clusterOf) { d.Machine.Suspend(); time.Sleep(ms) }
	for name, c := range map[string]struct {
		of      string // Do, if not set
		flavor  fakeredis.Flavor
		change  func(*redlock.Config)
		atLeast time.Duration
		ttl     time.Duration
		job     time.Duration
		during  func(d *clusterOf) error // at the end of the job
		after   func(d *clusterOf)
		panics  bool
		trip    time.Duration // 1 ms, if not set
		errs    error
		want    time.Duration // after the grant a quorum of nodes is free
		late    time.Duration // so much later at most
	}{
		"a short job":              {job: 20 * ms, want: atLeast},
		"DoAll":                    {of: "DoAll", job: 20 * ms, want: atLeast},
		"DoAny":                    {of: "DoAny", job: 20 * ms, want: atLeast},
		"TryDo":                    {of: "TryDo", job: 20 * ms, want: atLeast},
		"a long TTL":               {ttl: time.Hour, job: 20 * ms, want: atLeast},
		"a long job":               {job: 2 * atLeast, want: 2 * atLeast},
		"a job as long":            {job: atLeast - 20*ms, want: atLeast},
		"shorter than a trip":      {atLeast: ms, job: 20 * ms, want: 20 * ms},
		"without a TTL beyond":     {change: func(c *redlock.Config) { c.MaxTTL = atLeast }, job: 20 * ms, want: atLeast},
		"native releases":          {flavor: fakeredis.Valkey9, job: 20 * ms, want: atLeast},
		"native releases of 8.4":   {flavor: fakeredis.Redis84, job: 20 * ms, want: atLeast},
		"an error":                 {job: 20 * ms, during: func(*clusterOf) error { return own }, errs: own, want: atLeast},
		"a panic":                  {job: 20 * ms, during: func(*clusterOf) error { panic(own) }, panics: true, want: atLeast},
		"nodes without the script": {job: 20 * ms, during: func(d *clusterOf) error { d.Servers.Each((*fakeredis.Server).FlushScripts); return nil }, want: atLeast},
		"connections end": {job: 20 * ms, during: func(d *clusterOf) error {
			d.Servers.Each((*fakeredis.Server).ResetConns)
			return nil
		}, want: atLeast},
		"nodes miss the release": {job: 20 * ms, during: func(d *clusterOf) error {
			d.Servers.Each((*fakeredis.Server).Down) // it forgets nothing
			time.AfterFunc(time.Second, func() { require.NoError(d.t, d.Servers.Heal()) })
			return nil
		}, want: atLeast, late: 100 * ms},
		"nodes refuse the release": {job: 20 * ms, during: func(d *clusterOf) error {
			d.Servers.Each(func(s *fakeredis.Server) { s.ErrorReply("EVALSHA", "ERR not now", 2) })
			return nil
		}, want: atLeast, late: 100 * ms},
		"the key is deleted": {job: 20 * ms, during: func(d *clusterOf) error { d.Servers.Del("k"); time.Sleep(short); return nil }, errs: redlock.ErrNotHeld, want: 20*ms + short},
		"Close at once":      {job: 20 * ms, after: func(d *clusterOf) { d.ends(d.Close) }, want: atLeast},
		"Shutdown at once":   {job: 20 * ms, after: func(d *clusterOf) { d.ends(func() error { return d.Shutdown(d.t.Context()) }) }, want: atLeast},
		"Close":              {job: 20 * ms, during: func(d *clusterOf) error { d.ends(d.Close); return nil }, errs: redlock.ErrClosed, want: atLeast, late: crashed},
		"Shutdown": {job: 20 * ms, during: func(d *clusterOf) error {
			go d.Shutdown(context.Background())
			time.Sleep(50 * ms)
			return nil
		}, want: atLeast},
		"the process is killed": {job: 20 * ms, during: func(d *clusterOf) error { suspend(d); return nil }, want: atLeast, late: crashed},
		"it is killed at once":  {during: func(d *clusterOf) error { suspend(d); return nil }, want: atLeast, late: crashed},
		"it is killed far away": {atLeast: time.Second, change: func(c *redlock.Config) { c.NodeTimeout = 300 * ms }, during: func(d *clusterOf) error {
			suspend(d)
			return nil
		}, trip: 90 * ms, want: time.Second, late: 300 * ms},
		"a round of a third":         {atLeast: time.Second, ttl: 900 * ms, change: func(c *redlock.Config) { c.NodeTimeout = time.Second }, trip: 300 * ms, want: time.Second},
		"it is killed in a long job": {job: 2 * atLeast, during: func(d *clusterOf) error { suspend(d); return nil }, want: 2 * atLeast, late: short},
	} {
		cluster.Run(t, name, func(t *testing.T) {
			change := func(*redlock.Config) {}
			if c.change != nil {
				change = c.change
			}
			r := cluster.Of(t, cluster.Start(t, 3, fakeredis.Options{Flavor: c.flavor}), cluster.NodeTimeout(60*ms), change)
			r.Servers.Delay(max(c.trip, ms))
			d := &clusterOf{r, t}
			if c.atLeast == 0 {
				c.atLeast = atLeast
			}
			if c.ttl == 0 {
				c.ttl = short
			}
			if c.of == "" {
				c.of = "Do"
			}
			time.Sleep(2 * atLeast) // with a MaxTTL nodes are quarantined first
			granted, ended := time.Time{}, make(chan error, 1)
			go func() {
				defer func() {
					if v := recover(); v != nil || c.panics {
						require.Equal(t, own, v)
						ended <- nil
					}
				}()
				ended <- doings[c.of](r.With(redlock.Options{AtLeast: c.atLeast}), t.Context(), c.ttl, func(context.Context) error {
					granted = time.Now()
					time.Sleep(c.job)
					if c.during != nil {
						return c.during(d)
					}
					return nil
				})
			}()
			err := <-ended
			if c.errs != nil {
				require.ErrorIs(t, err, c.errs)
			} else {
				require.NoError(t, err)
			}
			require.Zero(t, r.Stats().Held)
			if c.after != nil {
				c.after(d)
			}
			for r.Holders("k") > 1 && time.Since(granted) < time.Hour {
				time.Sleep(ms)
			}
			lasted := time.Since(granted)
			t.Log(lasted)
			require.GreaterOrEqual(t, lasted, c.want)
			require.LessOrEqual(t, lasted, c.want+c.late+8*ms)
			if r.Machine.Slept() > 0 {
				r.Machine.Wake()
			}
		})
	}
}

// TestAtLeastInGroups: each key of a set stays for the whole term, although far groups are asked one after another.
func TestAtLeastInGroups(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		const atLeast, groups = time.Second, 5
		r := cluster.New(t, 3*groups, cluster.InGroups(3), cluster.NodeTimeout(100*time.Millisecond))
		var keys []string
		for i := 0; len(keys) < groups; i++ {
			if key := fmt.Sprint("k", i); client.Number(key, groups) == len(keys) {
				keys = append(keys, key)
			}
		}
		r.Servers.Delay(80 * time.Millisecond)
		var granted time.Time
		require.NoError(t, r.With(redlock.Options{AtLeast: atLeast}).DoAll(t.Context(), 200*time.Millisecond, keys, func(context.Context) error {
			granted = time.Now()
			return nil
		}))
		for time.Since(granted) < atLeast-time.Millisecond {
			time.Sleep(time.Millisecond)
			for _, key := range keys {
				require.Equal(t, 3, r.Holders(key), "%s after %v", key, time.Since(granted))
			}
		}
	})
}

// TestATermIsRefusedToAll: no caller in line has the lock before, also of the same client; and it has it then.
func TestATermIsRefusedToAll(t *testing.T) {
	const ms, atLeast = time.Millisecond, 3 * time.Second
	for name, with := range map[string]redlock.Options{"the same client": {}, "with a term too": {AtLeast: time.Second}, "another name": {Name: "other"}} {
		cluster.Run(t, name, func(t *testing.T) {
			r := cluster.New(t, 3)
			c := r.With(redlock.Options{AtLeast: atLeast})
			var next <-chan testkit.Result[redlock.Lock]
			var granted time.Time
			require.NoError(t, c.Do(t.Context(), "k", 10*time.Second, func(context.Context) error {
				granted = time.Now()
				next = inLine(t, r.With(with), t.Context(), "k", 1)
				return nil
			}))
			require.Equal(t, redlock.ErrTaken, errorOf(r.TryAcquire(t.Context(), "k", ttl)))
			l := locked(t, next)
			require.GreaterOrEqual(t, time.Since(granted), atLeast)
			require.Less(t, time.Since(granted), atLeast+50*ms)
			require.Zero(t, r.Stats().HandedOver)
			require.NoError(t, l.Release(t.Context()))
		})
	}
}

// TestATermBeginsWithItsGrant: a lock that would be passed on by a holder with little left of it is granted by the nodes.
func TestATermBeginsWithItsGrant(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		const atLeast = 10 * time.Second
		r := cluster.New(t, 3)
		l := cluster.MustAcquire(t, r.Client, "k", atLeast)
		began := make(chan time.Time, 1)
		done := testkit.Start(func() error {
			return r.With(redlock.Options{AtLeast: atLeast}).Do(t.Context(), "k", atLeast, func(context.Context) error {
				began <- time.Now()
				r.Machine.Suspend() // it is killed
				return nil
			})
		})
		testkit.Await(t, "in line", func() bool { return r.Stats().InLine == 1 })
		time.Sleep(atLeast / 16)
		require.NoError(t, l.Release(t.Context()))
		granted := <-began
		require.NoError(t, testkit.Outcome(t, "Do", done))
		for r.Holders("k") > 1 {
			time.Sleep(time.Millisecond)
		}
		require.GreaterOrEqual(t, time.Since(granted), atLeast)
		r.Machine.Wake()
	})
}

// TestALossIsNoticedInATerm: renewals go on by the TTL, however long the term is.
func TestALossIsNoticedInATerm(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		const ttl = 300 * time.Millisecond
		r := cluster.New(t, 3)
		require.ErrorIs(t, r.With(redlock.Options{AtLeast: time.Hour}).Do(t.Context(), "k", ttl, func(ctx context.Context) error {
			time.Sleep(time.Minute)
			require.NoError(t, ctx.Err())
			r.Servers.Del("k")
			began := time.Now()
			<-ctx.Done()
			require.LessOrEqual(t, time.Since(began), ttl/3+20*time.Millisecond)
			return nil
		}), redlock.ErrNotHeld)
	})
}

// TestNameOfOptions: it is beside the token of these locks, whichever way they go.
func TestNameOfOptions(t *testing.T) {
	for of, hooks := range map[string]redlock.Hooks{"": {}, "with hooks, ": {Attempt: func(redlock.Attempt) {}}} {
		for name, from := range map[string]string{"a named client": "host-1:42", "a client": ""} {
			cluster.Run(t, of+name, func(t *testing.T) {
				r := cluster.New(t, 3, holder(from), func(c *redlock.Config) { c.Hooks = hooks })
				requireHolder := func(key, want string) {
					t.Helper()
					s := testkit.Must(r.Inspect(t.Context(), key))(t)
					require.Equal(t, redlock.KeyHeld, s.Status)
					require.Equal(t, want, s.Holder)
				}
				order := r.With(redlock.Options{Name: "order-7"})
				l := testkit.Must(order.Acquire(t.Context(), "k", ttl))(t)
				requireHolder("k", "order-7")
				require.True(t, strings.HasSuffix(l.Token(), "@order-7"))
				require.NoError(t, l.Extend(t.Context(), ttl))
				require.NoError(t, l.Release(t.Context()))
				r.AwaitEmpty(t)

				set := testkit.Must(order.AcquireAll(t.Context(), ttl, "a", "b"))(t)
				requireHolder("b", "order-7")
				require.NoError(t, set.Release(t.Context()))
				require.NoError(t, order.Do(t.Context(), "k", 300*time.Millisecond, func(ctx context.Context) error {
					time.Sleep(time.Second) // it is kept alive
					requireHolder("k", "order-7")
					return ctx.Err()
				}))
				r.AwaitEmpty(t)

				op := &redlock.Op{Key: []byte("k"), TTL: ttl}
				require.NoError(t, submitAs(t, order, op, redlock.OpAcquire))
				requireHolder("k", "order-7")
				require.Equal(t, redlock.ErrNotHeld, submitAs(t, r.Client, op, redlock.OpExtend))
				require.NoError(t, submitAs(t, order, op, redlock.OpExtend))
				require.NoError(t, submitAs(t, order, op, redlock.OpRelease))
				r.AwaitEmpty(t)

				// It passes on to callers of the same name alone.
				for key, to := range map[string]*redlock.Client{"1": order, "1, waits": order.With(redlock.Options{Wait: time.Minute}), "0": r.Client, "0, other": r.With(redlock.Options{Name: "order-8"})} {
					before, want := r.Stats().HandedOver, uint64(key[0]-'0')
					held := cluster.MustAcquire(t, order, key, ttl)
					next := inLine(t, to, t.Context(), key, 1)
					held.ReleaseAsync()
					got := locked(t, next)
					require.Equal(t, want, r.Stats().HandedOver-before)
					require.NoError(t, got.Release(t.Context()))
				}
				r.AwaitEmpty(t)
			})
		}
	}
}

// TestWrongOptions: the calls say what is wrong, and no node is asked.
func TestWrongOptions(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		r := cluster.New(t, 3, func(c *redlock.Config) { c.MaxTTL = time.Hour })
		for want, o := range map[string]redlock.Options{
			"Wait is -1ns, want 0":                      {Wait: -1},
			"Wait is 2562047h47m16.854775807s, want":    {Wait: 1<<63 - 1},
			"Attempts is -1, want 0":                    {Attempts: -1},
			"AtLeast is -1s, want 0":                    {AtLeast: -time.Second},
			"AtLeast is 1h0m0.000000001s, at most 1h0m": {AtLeast: time.Hour + 1},
			"the Name has '\\n' in it":                  {Name: "a\nb"},
			"the Name has 129 bytes":                    {Name: strings.Repeat("n", 129)},
		} {
			c := r.With(o)
			op := &redlock.Op{Kind: redlock.OpAcquire, Key: []byte("k"), TTL: ttl, Done: func(*redlock.Op) {}}
			errs := []error{
				errorOf(c.Acquire(t.Context(), "k", ttl)), errorOf(c.TryAcquire(t.Context(), "k", ttl)), errorOf(c.AcquireAny(t.Context(), ttl, "k", "l")),
				errorOf(c.AcquireAll(t.Context(), ttl, "k", "l")), c.Submit(op), c.Submit(op), c.With(redlock.Options{Name: "right"}).TryDo(t.Context(), "k", ttl, nothing),
			}
			if o.Name != "" {
				errs = errs[:len(errs)-1]
			}
			for name, do := range doings {
				require.ErrorIs(t, do(c, t.Context(), ttl, nothing), redlock.ErrArgument, name)
			}
			for _, err := range errs {
				require.ErrorIs(t, err, redlock.ErrArgument)
				require.ErrorContains(t, err, want)
			}
		}
		require.Zero(t, r.Stats().Operations)
	})
}
