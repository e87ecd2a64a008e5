package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// TestAtLeast: a lock of Do is free at the end of its term, not before and not much later, through all that may happen meanwhile.
func TestAtLeast(t *testing.T) {
	const ms, atLeast, short = time.Millisecond, 5 * time.Second, 200 * time.Millisecond
	const crashed = 2 * 60 * ms // longer at most, where the process has not released it
	own := errors.New("the function's own")
	suspend := func(r *cluster.Cluster) { r.Machine.Suspend(); time.Sleep(ms) }
	ends := func(end func(r *cluster.Cluster) error) func(*cluster.Cluster) { // it waits for no term
		return func(r *cluster.Cluster) {
			began := time.Now()
			require.NoError(t, end(r))
			require.Less(t, time.Since(began), 10*ms)
		}
	}
	each := func(f func(*fakeredis.Server)) func(*cluster.Cluster) {
		return func(r *cluster.Cluster) { r.Servers.Each(f) }
	}
	shutdown := func(r *cluster.Cluster) error { return r.Shutdown(context.Background()) }
	for name, c := range map[string]struct {
		of      string // Do, if not set
		flavor  fakeredis.Flavor
		change  func(*redlock.Config)
		atLeast time.Duration
		ttl     time.Duration
		job     time.Duration
		during  func(r *cluster.Cluster) // at the end of the job
		fails   error                    // with it, then
		after   func(r *cluster.Cluster)
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
		"an error":                 {job: 20 * ms, fails: own, errs: own, want: atLeast},
		"a panic":                  {job: 20 * ms, during: func(*cluster.Cluster) { panic(own) }, panics: true, want: atLeast},
		"nodes without the script": {job: 20 * ms, during: each((*fakeredis.Server).FlushScripts), want: atLeast},
		"connections end":          {job: 20 * ms, during: each((*fakeredis.Server).ResetConns), want: atLeast},
		"nodes miss the release": {job: 20 * ms, during: func(r *cluster.Cluster) {
			r.Servers.Down() // it forgets nothing
			time.AfterFunc(time.Second, func() { require.NoError(t, r.Servers.Heal()) })
		}, want: atLeast, late: 100 * ms},
		"nodes refuse the release": {job: 20 * ms, during: each(func(s *fakeredis.Server) { s.ErrorReply("EVALSHA", "ERR not now", 2) }),
			want: atLeast, late: 100 * ms},
		"the key is deleted": {job: 20 * ms, during: func(r *cluster.Cluster) { r.Servers.Del("k"); time.Sleep(short) }, errs: redlock.ErrNotHeld, want: 20*ms + short},
		"Close at once":      {job: 20 * ms, after: ends((*cluster.Cluster).Close), want: atLeast},
		"Shutdown at once":   {job: 20 * ms, after: ends(shutdown), want: atLeast},
		"Close":              {job: 20 * ms, during: ends((*cluster.Cluster).Close), errs: redlock.ErrClosed, want: atLeast, late: crashed},
		"Shutdown":           {job: 20 * ms, during: func(r *cluster.Cluster) { go shutdown(r); time.Sleep(50 * ms) }, want: atLeast},

		"the process is killed": {job: 20 * ms, during: suspend, want: atLeast, late: crashed},
		"it is killed at once":  {during: suspend, want: atLeast, late: crashed},
		"it is killed far away": {atLeast: time.Second, change: cluster.NodeTimeout(300 * ms), during: suspend, trip: 90 * ms,
			want: time.Second, late: 300 * ms},
		"a round of a third":         {atLeast: time.Second, ttl: 900 * ms, change: cluster.NodeTimeout(time.Second), trip: 300 * ms, want: time.Second},
		"it is killed in a long job": {job: 2 * atLeast, during: suspend, want: 2 * atLeast, late: short},
	} {
		cluster.Run(t, name, func(t *testing.T) {
			change := []func(*redlock.Config){cluster.NodeTimeout(60 * ms)}
			if c.change != nil {
				change = append(change, c.change)
			}
			r := cluster.Of(t, cluster.Start(t, 3, fakeredis.Options{Flavor: c.flavor}), change...)
			r.Servers.Delay(max(c.trip, ms))
			c.atLeast, c.ttl = cmp.Or(c.atLeast, atLeast), cmp.Or(c.ttl, short)
			time.Sleep(2 * atLeast) // with a MaxTTL nodes are quarantined first
			granted, ended := time.Time{}, make(chan error, 1)
			go func() {
				defer func() {
					if v := recover(); v != nil || c.panics {
						require.Equal(t, own, v)
						ended <- nil
					}
				}()
				ended <- doings[cmp.Or(c.of, "Do")](r.With(redlock.Options{AtLeast: c.atLeast}), t.Context(), c.ttl, func(context.Context) error {
					granted = time.Now()
					time.Sleep(c.job)
					if c.during != nil {
						c.during(r)
					}
					return c.fails
				})
			}()
			require.ErrorIs(t, <-ended, c.errs)
			require.Zero(t, r.Stats().Held)
			if c.after != nil {
				c.after(r)
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

// TestATermInABurst: nodes have longer to answer a call that has waited long. A term is as long as ever, though it begins
// with their answers.
func TestATermInABurst(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		const ms, atLeast, others = time.Millisecond, time.Second, 20_000
		r := cluster.New(t, 3, cluster.NodeTimeout(50*ms))
		r.Servers.Delay(20 * ms)
		var left sync.WaitGroup
		left.Add(others)
		for range others {
			require.NoError(t, r.Submit(releaseOp("other", func(*redlock.Op) { left.Done() })))
		}
		for _, s := range r.Servers {
			back := sync.OnceFunc(func() {
				l := r.Machine.Link(s.Addr())
				l.Hold(false, true)
				time.AfterFunc(400*ms, l.Release)
			})
			s.OnCommand(func(_ int64, args []string) {
				if args[0] == "SET" && args[1] == "k" {
					back()
				}
			})
		}
		var granted time.Time
		require.NoError(t, r.With(redlock.Options{AtLeast: atLeast}).Do(t.Context(), "k", 200*ms, func(context.Context) error {
			granted = time.Now()
			return nil
		}))
		for r.Holders("k") > 1 {
			time.Sleep(ms)
		}
		require.GreaterOrEqual(t, time.Since(granted), atLeast-ms)
		left.Wait()
	})
}

// TestATermIsRefusedToAll: no caller in line has the lock before, also of the same client; and it has it then.
func TestATermIsRefusedToAll(t *testing.T) {
	const ms, atLeast = time.Millisecond, 3 * time.Second
	for name, with := range map[string]redlock.Options{"the same client": {}, "another name": {Name: "other"}} {
		cluster.Run(t, name, func(t *testing.T) {
			r := cluster.New(t, 3)
			c := r.With(redlock.Options{AtLeast: atLeast})
			var next <-chan testkit.Result[redlock.Lock]
			var granted time.Time
			require.NoError(t, c.Do(t.Context(), "k", ttl, func(context.Context) error {
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
