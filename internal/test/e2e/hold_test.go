package e2e

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
	"github.com/redlock-go/redlock/internal/wire/command"
)

// brief is the TTL of locks kept alive for several times as long.
const brief = 300 * time.Millisecond

// extends is the number of extending calls received by a master, and of their keys.
func extends(r *cluster.Recorder) (calls, keys int) {
	for _, c := range r.Calls("EVALSHA", command.ExtendSHA1) {
		var n int
		_, _ = fmt.Sscan(c.Args[2], &n)
		calls, keys = calls+1, keys+n
	}
	return calls, keys
}

// TestKeepAlive: locks outlive their TTL several times, extended at each third of it, in shared
// calls; a node that is down and a slow one do not matter.
func TestKeepAlive(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		const n = 100
		r := cluster.New(t, 5)
		var contexts []context.Context
		var locks []redlock.Lock
		for i := range n {
			l := cluster.MustAcquire(t, r.Client, fmt.Sprint("k", i), brief)
			ctx, stop := l.KeepAlive(t.Context())
			defer stop()
			contexts, locks = append(contexts, ctx), append(locks, l)
		}
		r.Servers[3].Down()
		r.Servers[4].Delay(brief / 4)
		require.Equal(t, n, cluster.Stats(t, r.Client).KeptAlive)
		calls, keys := extends(r.Recorders[0])
		time.Sleep(4 * brief)
		callsNow, keysNow := extends(r.Recorders[0])
		calls, keys = callsNow-calls, keysNow-keys
		for i, l := range locks {
			require.NoError(t, contexts[i].Err())
			require.Positive(t, l.Remaining())
			require.NoError(t, l.Release(t.Context()))
			require.Error(t, contexts[i].Err())
		}
		require.GreaterOrEqual(t, keys, 8*n, "extended each third of the TTL, but for delays")
		require.LessOrEqual(t, keys, 14*n, "and not more often")
		require.Less(t, calls, keys/4, "not each for itself")
		s := cluster.Stats(t, r.Client)
		require.Zero(t, s.KeptAlive)
		require.Zero(t, s.Lost)
	})
}

// manyErrors is an incomparable error.
type manyErrors []error

func (m manyErrors) Error() string { return fmt.Sprint([]error(m)) }

// TestKeptContextEnds: it has the cause, with all contexts made of it; the lock is no longer
// extended; and each loss, and nothing else, is reported once.
func TestKeptContextEnds(t *testing.T) {
	type world struct {
		*cluster.Cluster
		lock   redlock.Lock
		stop   func()
		cancel context.CancelCauseFunc
	}
	each := func(f func(*fakeredis.Server)) func(*testing.T, world) {
		return func(_ *testing.T, w world) { w.Servers.Each(f) }
	}
	quorumOf := func(f func(*fakeredis.Server)) func(*testing.T, world) {
		return func(_ *testing.T, w world) { f(w.Servers[0]); f(w.Servers[2]) }
	}
	for name, c := range map[string]struct {
		end     func(*testing.T, world)
		cause   error
		err     error // context.Canceled unless it is given
		lost    bool
		sudden  bool          // seen by Err at once
		timeout time.Duration // of the user's context
		own     bool          // the user's context is of no package
		remains bool          // validity does, since the lock is not lost
	}{
		"stopped":        {end: func(_ *testing.T, w world) { w.stop(); w.stop() }, cause: redlock.ErrStopped, sudden: true, remains: true},
		"released":       {end: func(t *testing.T, w world) { require.NoError(t, w.lock.Release(t.Context())) }, cause: redlock.ErrStopped, sudden: true},
		"released async": {end: func(_ *testing.T, w world) { w.lock.ReleaseAsync() }, cause: redlock.ErrStopped, sudden: true},
		"cancelled":      {end: func(_ *testing.T, w world) { w.cancel(manyErrors{context.Canceled}) }, cause: manyErrors{context.Canceled}, sudden: true, remains: true},
		"user's timeout": {timeout: brief / 2, cause: context.DeadlineExceeded, err: context.DeadlineExceeded, remains: true},
		"of its own":     {own: true, end: func(_ *testing.T, w world) { w.cancel(context.Canceled) }, cause: context.Canceled, sudden: true, remains: true},
		"closed":         {end: func(_ *testing.T, w world) { _ = w.Close() }, cause: redlock.ErrClosed, sudden: true, remains: true},
		"deleted":        {end: quorumOf(func(s *fakeredis.Server) { s.Del("k") }), cause: redlock.ErrNotHeld, lost: true},
		"another's":      {end: quorumOf(func(s *fakeredis.Server) { s.Set("k", "another's", ttl) }), cause: redlock.ErrNotHeld, lost: true},
		"silent":         {end: each((*fakeredis.Server).Mute), cause: redlock.ErrNoQuorum, lost: true},
		"frozen":         {end: quorumOf((*fakeredis.Server).Hang), cause: redlock.ErrNoQuorum, lost: true},
		"down":           {end: each((*fakeredis.Server).Down), cause: redlock.ErrNoQuorum, lost: true},
		"refused": {end: each(func(s *fakeredis.Server) { s.ErrorReply("EVALSHA", "BUSY Redis is busy", 1e6) }),
			cause: redlock.ErrNoQuorum, lost: true},
		"found lost by its holder": {end: func(t *testing.T, w world) {
			quorumOf(func(s *fakeredis.Server) { s.Del("k") })(t, w)
			require.Equal(t, redlock.ErrNotHeld, w.lock.Extend(t.Context(), brief))
		}, cause: redlock.ErrNotHeld, lost: true, sudden: true},
	} {
		cluster.Run(t, name, func(t *testing.T) {
			var y cluster.HookRecorder
			r := cluster.New(t, 3, cluster.Listening(&y))
			parent := t.Context()
			if c.timeout > 0 {
				parent = testkit.Limited(t, c.timeout)
			}
			user, cancel := context.WithCancelCause(parent)
			defer cancel(nil)
			if c.own {
				user = userContext{user, func(string) {}}
			}
			d := brief
			if c.cause == redlock.ErrNoQuorum || c.end == nil {
				d = 4 * brief // for a renewal to fail before the end, also on a busy machine
			}
			l := cluster.MustAcquire(t, r.Client, "k", d)
			r.AwaitHolders(t, 3, "k")
			ctx, stop := l.KeepAlive(user)
			goroutines := runtime.NumGoroutine()
			child, cancelChild := context.WithCancel(ctx)
			defer cancelChild()
			grandchild, cancelGrandchild := context.WithTimeout(child, testkit.Patience)
			defer cancelGrandchild()
			require.LessOrEqual(t, runtime.NumGoroutine(), goroutines, "contexts of it cost no goroutine")
			if c.timeout == 0 {
				testkit.Await(t, "a renewal", func() bool { n, _ := extends(r.Recorders[0]); return n > 0 })
				require.NoError(t, ctx.Err())
			}
			if c.end != nil {
				c.end(t, world{r, l, stop, cancel})
			}
			if c.sudden {
				require.Error(t, ctx.Err())
			}
			testkit.Get(t, grandchild.Done())
			require.Equal(t, cmp.Or(c.err, context.Canceled), ctx.Err())
			for _, ended := range []context.Context{ctx, child, grandchild} {
				if c.cause == redlock.ErrNoQuorum {
					quorum := testkit.As[*redlock.QuorumError](t, context.Cause(ended))
					require.NotEmpty(t, quorum.Failed)
				} else {
					require.Equal(t, c.cause, context.Cause(ended))
				}
			}
			require.Equal(t, c.remains, l.Remaining() > 0)

			// It is no longer extended: where a node has its key, it expires there.
			var s redlock.Stats
			testkit.Await(t, "the end of renewals", func() bool { // the context ends before it
				s = cluster.Stats(t, r.Client)
				return s.KeptAlive == 0
			})
			r.Heal(t)
			testkit.Await(t, "the key to end", func() bool {
				return !slices.ContainsFunc(r.Servers, func(s *fakeredis.Server) bool {
					value, ok := s.Get("k")
					return ok && value == l.Token()
				})
			})
			require.EqualValues(t, map[bool]int{true: 1}[c.lost], s.Lost)
			cluster.AwaitNews(t)
			lost := cluster.Take(&y, &y.Lost)
			require.Len(t, lost, map[bool]int{true: 1}[c.lost])
			if c.lost {
				require.Contains(t, lost[0], "k: ")
				_ = l.Release(t.Context())
				cluster.AwaitNews(t)
				require.Empty(t, cluster.Take(&y, &y.Lost), "told once")
			}
		})
	}
}

// TestStoodStill: after a suspension of its machine, a holder that asks learns at once that the
// lock has ended, and its other goroutines soon.
func TestStoodStill(t *testing.T) {
	cluster.On(t, 3, func(t *testing.T, r *cluster.Cluster) {
		for _, look := range []func(context.Context, redlock.Lock){
			func(ctx context.Context, _ redlock.Lock) { require.Equal(t, context.Canceled, ctx.Err()) },
			func(_ context.Context, l redlock.Lock) { require.Zero(t, l.Remaining()) },
			func(ctx context.Context, _ redlock.Lock) { testkit.Get(t, ctx.Done()) },
		} {
			l := cluster.MustAcquire(t, r.Client, "k", ttl)
			ctx, stop := l.KeepAlive(t.Context())
			r.Machine.Skip(2 * ttl)
			look(ctx, l)
			require.Equal(t, context.Canceled, ctx.Err())
			require.Equal(t, redlock.ErrExpired, context.Cause(ctx))
			require.Zero(t, l.Remaining())
			stop()
			require.Equal(t, redlock.ErrExpired, context.Cause(ctx))
			require.NoError(t, l.Release(t.Context()))
		}
	})
}

// TestKeepAliveRefused: the context has ended, with the cause, and nothing is sent.
func TestKeepAliveRefused(t *testing.T) {
	cluster.On(t, 3, func(t *testing.T, r *cluster.Cluster) {
		short := cluster.MustAcquire(t, r.Client, "short", 29*time.Millisecond)
		released := cluster.MustAcquire(t, r.Client, "released", brief)
		require.NoError(t, released.Release(t.Context()))
		live := cluster.MustAcquire(t, r.Client, "live", ttl)
		ended, cancel := context.WithCancelCause(t.Context())
		cancel(manyErrors{context.Canceled})
		before, _ := extends(r.Recorders[0])
		for name, c := range map[string]struct {
			lock  redlock.Lock
			ctx   context.Context
			cause string
		}{
			"short":    {short, nil, "30ms"},
			"released": {released, nil, redlock.ErrNotHeld.Error()},
			"zero":     {redlock.Lock{}, nil, redlock.ErrNotHeld.Error()},
			"ended":    {live, ended, manyErrors{context.Canceled}.Error()},
		} {
			ctx, stop := c.lock.KeepAlive(c.ctx)
			require.True(t, testkit.IsClosed(ctx.Done()), name)
			require.ErrorContains(t, context.Cause(ctx), c.cause)
			stop()
			stop()
		}
		after, _ := extends(r.Recorders[0])
		require.Equal(t, before, after)
		require.Zero(t, cluster.Stats(t, r.Client).KeptAlive)
	})
}

// TestReleasesInAFullQueue are sent, in the place that they have there: of locks kept alive, of several keys, with callers in
// line, with an ended context, and without a waiting caller. Acquires are refused at once; a call of Acquire tries again.
func TestReleasesInAFullQueue(t *testing.T) {
	kept := func(t *testing.T, l redlock.Lock) { require.NoError(t, cluster.Keep(l, func(error) {})) }
	for name, c := range map[string]struct {
		keys    []string
		change  func(*redlock.Config)
		before  func(t *testing.T, l redlock.Lock)
		waits   bool // another caller
		release func(t *testing.T, l redlock.Lock) error
		want    error
	}{
		"plain":          {},
		"with hooks":     {change: func(c *redlock.Config) { c.Hooks.Attempt = func(redlock.Attempt) {} }},
		"kept alive":     {before: kept},
		"several keys":   {keys: []string{"a", "b", "c"}},
		"and kept alive": {keys: []string{"a", "b", "c"}, before: kept},
		"in line":        {change: func(c *redlock.Config) { c.NoHandOver = true }, waits: true},
		"ended context":  {release: func(t *testing.T, l redlock.Lock) error { return l.Release(ended(t)) }, want: context.Canceled},
		"not awaited":    {release: func(_ *testing.T, l redlock.Lock) error { l.ReleaseAsync(); return nil }},
	} {
		cluster.Run(t, name, func(t *testing.T) {
			if c.change == nil {
				c.change = func(*redlock.Config) {}
			}
			if c.keys == nil {
				c.keys = []string{"k"}
			}
			r := cluster.New(t, 3, func(cfg *redlock.Config) { cfg.MaxWaiting = 4 }, c.change)
			l := testkit.Must(r.TryAcquireAll(t.Context(), ttl, c.keys...))(t)
			if c.before != nil {
				c.before(t, l)
			}
			var next <-chan testkit.Result[redlock.Lock]
			if c.waits {
				next = inLine(t, r.Client, t.Context(), "k", 1)
			}
			unclogged := r.Clog(t)
			for submitRefused(r.Client, "fills the queue") == nil {
			}
			require.Equal(t, redlock.ErrBusy, submitRefused(r.Client, "new"))
			require.Equal(t, redlock.ErrBusy, errorOf(r.TryAcquire(t.Context(), "new", ttl)))
			busy := acquiring(t, r.Client, "new")
			if c.release == nil {
				c.release = func(t *testing.T, l redlock.Lock) error { return l.Release(t.Context()) }
			}
			released := testkit.Start(func() error { return c.release(t, l) })
			testkit.Await(t, "the end of the validity", func() bool { return l.Remaining() == 0 })
			r.Heal(t)
			unclogged()
			require.Equal(t, c.want, testkit.Outcome(t, "Release", released))
			require.Zero(t, r.Stats().Release.Refused)
			require.NoError(t, locked(t, busy).Release(t.Context()), "it has tried again")
			if c.waits {
				require.NoError(t, locked(t, next).Release(t.Context()))
			}
			for _, key := range c.keys {
				r.AwaitHolders(t, 0, key)
			}
		})
	}
}
