package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

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
			if c.change != nil {
				require.NoError(t, r.InitFencing(t.Context()))
			}
			if c.before != nil {
				c.before(r)
			}
			if c.ttl == 0 {
				c.ttl = ttl
			}
			var granted time.Time
			require.NoError(t, r.TryDo(t.Context(), "k", c.ttl, func(context.Context) error {
				granted = time.Now()
				time.Sleep(c.job)
				if c.during != nil {
					c.during(r)
				}
				return nil
			}))
			if c.after != nil {
				c.after(r)
			}
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
