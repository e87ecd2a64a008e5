package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// work is the function of a call of Do.
type work = func(context.Context) error

// doings holds the calls that a lock of "k" is acquired by, and kept alive.
var doings = map[string]func(c *redlock.Client, ctx context.Context, ttl time.Duration, f work) error{
	"Do": func(c *redlock.Client, ctx context.Context, ttl time.Duration, f work) error {
		return c.Do(ctx, "k", ttl, f)
	},
	"TryDo": func(c *redlock.Client, ctx context.Context, ttl time.Duration, f work) error {
		return c.TryDo(ctx, "k", ttl, f)
	},
	"DoAll": func(c *redlock.Client, ctx context.Context, ttl time.Duration, f work) error {
		return c.DoAll(ctx, ttl, []string{"j", "k"}, f)
	},
	"DoAny": func(c *redlock.Client, ctx context.Context, ttl time.Duration, f work) error {
		return c.DoAny(ctx, ttl, []string{"k"}, f)
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
		r.Servers[2].Set("k", foreign, 0)
		r.Servers[2].Set("k2", foreign, 0)
		r.Servers[1:2].Take("k")
		r.Servers[1:2].Take("k2")
	}
	for of, call := range waits {
		for name, c := range map[string]struct {
			before func(r *cluster.Cluster)
			ctx    time.Duration
			last   error // nil: none
			want   time.Duration
		}{
			"taken":                      {before: taken, last: redlock.ErrTaken, want: wait},
			"no node answers":            {before: func(r *cluster.Cluster) { r.Servers.Hang() }, last: redlock.ErrNoAnswer, want: wait}, // no claim about the lock
			"split":                      {before: split, last: redlock.ErrTaken, want: wait},
			"split, the context is over": {before: split, ctx: wait / 2, last: redlock.ErrTaken, want: wait / 2},
			"a look of a split caller": {before: func(r *cluster.Cluster) {
				r.Servers.Delay(wait / 2)
				split(r)
				r.Servers[0].OnCommand(func(_ int64, args []string) {
					if args[0] == "EVALSHA" { // the release of what it has granted: it is silent from then on
						go r.Servers[0].Hang()
					}
				})
			}, last: redlock.ErrNoAnswer, want: wait},
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
				requireOnly(t, err, c.last)
				if c.last == redlock.ErrTaken {
					require.EqualValues(t, 1, r.Stats().Waits.UsedUp)
				}
				require.Zero(t, r.Stats().InLine)
			})
		}
	}
}

// TestWaitIsOfThoseWhoWait: a call of one attempt has none, and a lock passed on in time is had.
func TestWaitIsOfThoseWhoWait(t *testing.T) {
	cluster.On(t, 3, func(t *testing.T, r *cluster.Cluster) {
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
				require.NoError(t, submitAs(t, r.Client, op, redlock.OpExtend), "the name goes with the token")
				op.SetToken(op.Token()[:22])
				require.Equal(t, redlock.ErrNotHeld, submitAs(t, order, op, redlock.OpExtend))
				op.SetToken(op.Token() + "@order-7")
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
			"Wait is -1ns, want 0":                         {Wait: -1},
			"Wait is 2562047h47m16.854775807s, want":       {Wait: 1<<63 - 1},
			"Attempts is -1, want 0":                       {Attempts: -1},
			"AtLeast is -1s, want 0":                       {AtLeast: -time.Second},
			"AtLeast is 8760h0m0.000000001s, at most 8760": {AtLeast: redlock.MaxTTL + 1},
			"AtLeast is of Do":                             {AtLeast: time.Second}, // and of no call without a function or of a shared lock
			"the Name has '\\n' in it":                     {Name: "a\nb"},
			"the Name has 129 bytes":                       {Name: strings.Repeat("n", 129)},
		} {
			c, ctx := r.With(o), testkit.Limited(t, time.Second)
			op := &redlock.Op{Kind: redlock.OpAcquire, Key: []byte("k"), TTL: ttl, Done: func(*redlock.Op) {}}
			errs := []error{
				errorOf(c.Acquire(ctx, "k", ttl)), errorOf(c.TryAcquire(ctx, "k", ttl)), errorOf(c.AcquireAny(ctx, ttl, "k", "l")),
				errorOf(c.AcquireAll(ctx, ttl, "k", "l")), c.Submit(op), c.Submit(op),
				errorOf(c.AcquireShared(ctx, "k", ttl)), errorOf(c.TryAcquireShared(ctx, "k", ttl)), c.DoShared(ctx, "k", ttl, nothing), c.TryDoShared(ctx, "k", ttl, nothing),
			}
			if o.AtLeast != time.Second {
				for _, do := range doings {
					errs = append(errs, do(c, ctx, ttl, nothing))
				}
				if o.Name == "" {
					errs = append(errs, c.With(redlock.Options{Name: "right"}).TryDo(ctx, "k", ttl, nothing))
				}
			}
			for _, err := range errs {
				require.ErrorIs(t, err, redlock.ErrArgument)
				require.ErrorContains(t, err, want)
			}
		}
		require.Zero(t, r.Stats().Operations)
	})
}
