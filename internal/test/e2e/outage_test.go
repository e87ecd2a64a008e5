package e2e

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
	"github.com/redlock-go/redlock/internal/test/testkit/virtual"
)

// outages of all masters, and their ends.
var outages = map[string]func(s fakeredis.Servers, m *virtual.Machine) (end func()){
	"refused": func(s fakeredis.Servers, _ *virtual.Machine) func() { s.Down(); return func() { _ = s.Heal() } },
	"hanging": func(s fakeredis.Servers, _ *virtual.Machine) func() { s.Hang(); return func() { _ = s.Heal() } },
	"cut off": func(s fakeredis.Servers, m *virtual.Machine) func() {
		drop := func(on bool) { s.Each(func(s *fakeredis.Server) { m.Link(s.Addr()).Drop(on) }) }
		drop(true)
		return func() { drop(false) }
	},
}

// plainly are the settings of a user who has set none.
func plainly(c *redlock.Config) { cluster.DefaultTimeouts(c); c.Retry = redlock.Retry{} }

// TestFirstGrantAfterAnOutage: one who waits, and one who tries all the time, has the lock soon after a quorum is back,
// whether the nodes were silent or refused, for a short or a long time.
func TestFirstGrantAfterAnOutage(t *testing.T) {
	for name, begin := range outages {
		for _, lasts := range []time.Duration{3 * time.Second, 30 * time.Second} {
			cluster.Run(t, name+" for "+lasts.String(), func(t *testing.T) {
				servers := cluster.Start(t, 3)
				var all []time.Duration
				for i := range 8 {
					m := cluster.NewMachine(t)
					c := cluster.ConnectOn(t, m, fakeredis.Addrs(servers), plainly, func(c *redlock.Config) {
						if i%4 == 0 { // it is woken, however rarely it asks
							c.Retry = redlock.Retry{Min: 10 * time.Second, Max: time.Minute}
						}
					})
					end := begin(servers, m)
					granted := make(chan time.Time, 1)
					acquire := []func(context.Context, string, time.Duration) (redlock.Lock, error){c.Acquire, c.TryAcquire}[i%2]
					go func() {
						l, err := acquire(t.Context(), "k", time.Minute)
						for ; err != nil && i%2 == 1; l, err = acquire(t.Context(), "k", time.Minute) {
							time.Sleep(10 * time.Millisecond)
						}
						granted <- time.Now()
						require.NoError(t, err)
						_ = l.Release(t.Context())
					}()
					time.Sleep(lasts + time.Duration(i)*37*time.Millisecond)
					ended := time.Now()
					end()
					all = append(all, (<-granted).Sub(ended))
					require.NoError(t, c.Close())
					time.Sleep(time.Minute)
				}
				slices.Sort(all)
				t.Log("p50", all[len(all)/2], "max", all[len(all)-1])
				require.LessOrEqual(t, all[len(all)/2], 200*time.Millisecond) // 150 ms on average
				require.LessOrEqual(t, all[len(all)-1], 300*time.Millisecond)
			})
		}
	}
}

// TestCutOffAgainAndAgain: connections that die young are made again ever more rarely, and the log is bounded, and true in
// the end. One that has lived is replaced at once.
func TestCutOffAgainAndAgain(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		var log testkit.LogSink
		r := cluster.New(t, 3, plainly, func(c *redlock.Config) { c.Logger = log.Logger(slog.LevelInfo) })
		lines := func(text string) int { return strings.Count(log.String(), text) }
		node := r.Servers[0].Addr()
		connects := func() uint64 { return r.Stats().Nodes[0].Connects }
		var pause atomic.Int64 // of the load: a connection that is cut off is in use
		pause.Store(int64(100 * time.Millisecond))
		busy, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			for busy.Err() == nil {
				live(t, r.Client, "k")
				time.Sleep(time.Duration(pause.Load()))
			}
		}()
		time.Sleep(11 * time.Second)
		pause.Store(int64(5 * time.Millisecond))
		time.Sleep(time.Second)
		r.Servers[0].ResetConns()
		time.Sleep(10 * time.Millisecond)
		require.EqualValues(t, 2, connects(), "at once")

		pause.Store(int64(time.Second))
		time.Sleep(time.Minute)
		pause.Store(int64(10 * time.Millisecond))
		before, said := connects(), lines("node="+node)
		for range 60 * 25 {
			r.Servers[0].ResetConns()
			time.Sleep(40 * time.Millisecond)
		}
		pause.Store(int64(time.Second))
		t.Log("connects", connects()-before, "lines", lines("node="+node)-said)
		require.LessOrEqual(t, connects()-before, uint64(80))
		require.LessOrEqual(t, lines("node="+node)-said, 14)
		time.Sleep(20 * time.Second)
		require.True(t, r.Stats().Nodes[0].Up)
		all := strings.Split(strings.TrimSpace(log.String()), "\n")
		last := all[len(all)-1]
		require.Contains(t, last, "level=WARN")
		require.Contains(t, last, "node is up again")
		stop()
		<-done
	})
}

// TestWarningsEnd: each is followed by the news that it is over, once and at its own level.
func TestWarningsEnd(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		var log testkit.LogSink
		servers := cluster.Start(t, 3)
		servers[1:].Down()
		r := cluster.Of(t, servers, plainly, func(c *redlock.Config) { c.Logger = log.Logger(slog.LevelWarn) })
		said := func(what string, times int) {
			t.Helper()
			require.Equal(t, times, strings.Count(log.String(), what), log.String())
		}
		cluster.AwaitHooks(t, r.Client)
		said("node is down", 2)
		said("no lock can be acquired yet", 1)
		require.NoError(t, servers.Heal())
		require.NoError(t, r.Ready(t.Context()))
		cluster.AwaitNodesUp(t, r.Client, 3)
		cluster.AwaitHooks(t, r.Client)
		said("node is up again", 2)
		said("locks can be acquired now", 1)

		live(t, r.Client, "k")
		require.NoError(t, servers[0].Restart(true))
		time.Sleep(time.Second)
		said("has no vote yet", 1)
		said("has its vote back", 0)
		time.Sleep(2 * ttl)
		said("has its vote back", 1)
		said("node is up again", 3)
		said("locks can be acquired now", 1)
		require.NotRegexp(t, `for=\S*\d\.\d\d`, log.String(), "a rounded time")
	})
}

// TestIdleClient: servers that close idle connections cost no warning, no hook and no readiness.
func TestIdleClient(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		var log testkit.LogSink
		var y cluster.HookRecorder
		r := cluster.New(t, 3, plainly, cluster.Listening(&y), func(c *redlock.Config) { c.Logger = log.Logger(slog.LevelInfo) })
		for range 12 {
			time.Sleep(5 * time.Second)
			r.Servers.Each((*fakeredis.Server).CloseConns)
			for range 100 {
				require.NoError(t, cluster.IsReady(r))
				time.Sleep(50 * time.Microsecond)
			}
		}
		for _, n := range r.Stats().Nodes {
			require.EqualValues(t, 13, n.Connects)
		}
		cluster.AwaitHooks(t, r.Client)
		require.NotContains(t, log.String(), "level=WARN")
		require.Equal(t, 3, strings.Count(log.String(), "closes idle connections"), "once for each")
		require.Len(t, cluster.Take(&y, &y.Nodes), 3, "they came up at first")

		time.Sleep(5 * time.Second)
		r.Servers[0].Down()
		time.Sleep(time.Second)
		require.Equal(t, 1, strings.Count(log.String(), "node is down"), "an outage begins the same way")
		require.Len(t, cluster.Take(&y, &y.Nodes), 1)
	})
}

// TestNoAttemptMeetsAnIdleEnd: at each moment around the one at which all servers close their idle connections an
// attempt wins, and leaves nothing.
func TestNoAttemptMeetsAnIdleEnd(t *testing.T) {
	cluster.On(t, 3, func(t *testing.T, r *cluster.Cluster) {
		failed := 0
		for i := range 1000 {
			time.Sleep(5 * time.Second)
			at := time.Duration(i-500) * 2 * time.Microsecond // from the close on
			if at < 0 {
				time.AfterFunc(-at, func() { r.Servers.Each((*fakeredis.Server).CloseConns) })
			} else {
				r.Servers.Each((*fakeredis.Server).CloseConns)
				time.Sleep(at)
			}
			l, err := r.TryAcquire(t.Context(), "k", 10*time.Second)
			if err != nil {
				failed++
				t.Log(at, err)
				continue
			}
			l.ReleaseAsync()
		}
		require.Zero(t, failed)
		time.Sleep(time.Second)
		r.AwaitEmpty(t)
	}, plainly)
}

// TestReadyAllWhileANodeRests: a client that was idle waits for the next connection to a node, whose server may have
// restarted, and then for its vote.
func TestReadyAllWhileANodeRests(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		const way = 10 * time.Millisecond
		servers, m := cluster.Start(t, 3), cluster.NewMachine(t)
		c := cluster.ConnectOn(t, m, fakeredis.Addrs(servers), plainly)
		require.NoError(t, c.ReadyAll(t.Context()))
		m.Link(servers[0].Addr()).Delay(way, way, 0)
		time.Sleep(5 * time.Second)
		require.NoError(t, servers[0].Restart(true))
		time.Sleep(way + way/2)
		before := c.Stats().Nodes[0]
		require.True(t, before.Up && before.Connects == 1, "it rests")
		require.NoError(t, c.ReadyAll(t.Context()))
		after := c.Stats().Nodes[0]
		require.EqualValues(t, 2, after.Connects)
		require.NoError(t, after.NoVote)
	})
}

// TestGrantAfterAnOutageOfWrites: nodes refuse what was released meanwhile, for a short or a long time and with any
// error. Once they take writes again they are sent it, so another process has the lock.
func TestGrantAfterAnOutageOfWrites(t *testing.T) {
	for _, text := range []string{"NOREPLICAS Not enough good replicas to write.", "NOPERM this user has no permissions to run the 'evalsha' command", "LATER a code of a later server"} {
		for _, lasts := range []time.Duration{4 * time.Second, 16500 * time.Millisecond, time.Minute} {
			cluster.Run(t, text[:5]+" for "+lasts.String(), func(t *testing.T) {
				servers := cluster.Start(t, 3)
				one := cluster.ConnectOn(t, cluster.NewMachine(t), fakeredis.Addrs(servers), plainly)
				other := cluster.ConnectOn(t, cluster.NewMachine(t), fakeredis.Addrs(servers), plainly)
				var locks []redlock.Lock
				for i := range 20 {
					locks = append(locks, cluster.MustAcquire(t, one, fmt.Sprint("k", i), 10*time.Minute))
				}
				shared := testkit.Must(one.AcquireShared(t.Context(), "shared", 10*time.Minute))(t)
				servers.Each(func(s *fakeredis.Server) {
					s.ErrorReply("SET", text, 0)
					s.ErrorReply("EVALSHA", text, 0)
				})
				for _, l := range append(locks, shared) {
					require.ErrorIs(t, l.Release(t.Context()), redlock.ErrNoQuorum)
				}
				time.Sleep(lasts)
				require.NoError(t, servers.Heal())
				healed := time.Now()
				for _, key := range []string{"k19", "k0", "shared"} {
					l, err := other.Acquire(t.Context(), key, time.Minute)
					require.NoError(t, err)
					require.NoError(t, l.Release(t.Context()))
				}
				require.Less(t, time.Since(healed), 300*time.Millisecond)
			})
		}
	}
}
