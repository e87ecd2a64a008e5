package e2e

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/rules/fencing"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// TestInitBesideASilentNode: each node of a new fleet must have answered. Nothing is written to the others.
func TestInitBesideASilentNode(t *testing.T) {
	for name, fall := range map[string]func(s *fakeredis.Server){"down": (*fakeredis.Server).Down, "silent": (*fakeredis.Server).Mute} {
		cluster.Run(t, name, func(t *testing.T) {
			c := startChanging(t, 3)
			client := c.client(three, nil, 0)
			fall(c.servers[1])
			err := client.InitFencing(t.Context())
			require.ErrorIs(t, err, redlock.ErrConfig)
			require.ErrorContains(t, err, c.servers[1].Addr())
			require.NotContains(t, []fencing.Phase{c.marker(0).Phase, c.marker(2).Phase}, fencing.Voting)
			require.NoError(t, c.servers.Heal())
		})
	}
}

// TestInitBesideAChange: all nodes are to be replaced, and a client of the new list alone calls InitFencing before or
// while the first client of both comes. While the call is under way it is refused. An earlier call that has returned
// looks like that of a new fleet: no node of the new list knew of the old one. Then each act of a client of both is
// refused, names the nodes, and says what to do.
func TestInitBesideAChange(t *testing.T) {
	next := []int{3, 4, 5}
	for _, at := range []float64{0, 0.5, 0.9, 1} {
		cluster.Run(t, fmt.Sprint("after ", at), func(t *testing.T) {
			c := startChanging(t, 6)
			old := c.client(three, nil, 0)
			require.NoError(t, old.InitFencing(t.Context()))
			c.grows(old, "k")
			early := c.client(next, nil, 0)
			call := testkit.Start(func() error { return early.InitFencing(t.Context()) })
			if at < 1 {
				time.Sleep(time.Duration(at * float64(fenceTTL)))
			} else { // it has returned
				require.NoError(t, testkit.Outcome(t, "InitFencing", call))
			}
			both := c.client(three, next, 0)
			if at < 1 {
				require.ErrorContains(t, testkit.Outcome(t, "InitFencing", call), "ChangeFencing")
				require.NoError(t, both.ReadyAll(t.Context()))
				c.grows(both, "k")
			} else {
				testkit.Await(t, "all answer", func() bool { return both.Ready(t.Context()) == nil })
				for _, act := range []error{both.ChangeFencing(t.Context()), both.InitFencing(t.Context()), both.RecoverFencing(t.Context(), 1)} {
					require.ErrorIs(t, act, redlock.ErrConfig)
					require.ErrorContains(t, act, "Stop all such clients")
				}
				require.NoError(t, early.Close())
				for _, i := range next {
					c.servers[i].Flush()
				}
			}
			require.NoError(t, both.ChangeFencing(t.Context()))
			c.grows(c.client(next, nil, 0), "k")
		})
	}
}

// TestActsBesideASickNode: each act returns, though one node cannot carry it out, and the log names
// this node. A recovery needs the name of an unreachable node as lost.
func TestActsBesideASickNode(t *testing.T) {
	sick := map[string]func(*fakeredis.Server){
		"no ZADD":     func(s *fakeredis.Server) { s.Deny("zadd") },
		"300 ms late": func(s *fakeredis.Server) { s.Delay(300 * time.Millisecond) },
		"OOM":         func(s *fakeredis.Server) { s.ErrorReply("EVALSHA", "OOM command not allowed", 1<<30) },
		"wrong type":  func(s *fakeredis.Server) { s.Plant(fenceSet, "list") },
	}
	for name, fall := range sick {
		cluster.Run(t, name, func(t *testing.T) {
			c := startChanging(t, 4)
			const longest = 2 * time.Second
			log := &testkit.LogSink{}
			client := func(to []int) *redlock.Client {
				return c.connect(fromTo(c.servers, three, to), fenced(0), func(c *redlock.Config) { c.MaxTTL, c.Logger = longest, log.Logger(slog.LevelWarn) })
			}
			old := client(nil)
			shows := name == "no ZADD" || name == "300 ms late"
			if shows {
				fall(c.servers[2])
			}
			soon := func(act func(context.Context) error) {
				t.Helper()
				began := time.Now()
				require.NoError(t, act(t.Context()))
				require.Less(t, time.Since(began), 2*longest)
			}
			soon(old.InitFencing)
			if !shows {
				fall(c.servers[2])
			}
			c.grows(old, "k")
			both := client(replaced)
			testkit.Await(t, "a quorum of both", func() bool { return both.Ready(t.Context()) == nil })
			time.Sleep(2 * longest)
			soon(both.ChangeFencing)
			c.grows(both, "k")
			c.servers[:2].Flush()
			var lost []string
			if !shows {
				lost = append(lost, c.servers[2].Addr())
				require.ErrorContains(t, both.RecoverFencing(t.Context(), c.last["k"]), lost[0]+" cannot be asked and may remember")
			}
			soon(func(ctx context.Context) error { return both.RecoverFencing(ctx, c.last["k"], lost...) })
			testkit.Await(t, "the log to name it", func() bool { // Logger is called by a goroutine of its own
				return name == "300 ms late" || strings.Contains(log.String(), "will restore it\" nodes="+c.servers[2].Addr())
			})
			c.grows(both, "k")
		})
	}
}

// TestTwoActsAtOnce: the later one begins at any time of the first, or after it. From the first nil
// on, clients of the next list are not refused.
func TestTwoActsAtOnce(t *testing.T) {
	for _, later := range []time.Duration{0, fenceTTL / 4, fenceTTL / 2, fenceTTL * 9 / 10, fenceTTL * 11 / 10, 2 * fenceTTL} {
		cluster.Run(t, later.String(), func(t *testing.T) {
			c := startChanging(t, 4)
			first, second := c.client(three, nil, 0), c.client(three, nil, 0)
			two := func(one, other func(context.Context) error, use *redlock.Client) {
				t.Helper()
				a := testkit.Start(func() error { return one(t.Context()) })
				b := testkit.Start(func() error { time.Sleep(later); return other(t.Context()) })
				require.NoError(t, testkit.Outcome(t, "the first", a))
				for end := time.Now().Add(4 * fenceTTL); time.Now().Before(end); time.Sleep(fenceTTL / 50) {
					c.grows(use, "k")
				}
				require.NoError(t, testkit.Outcome(t, "the later", b))
			}
			two(first.InitFencing, second.InitFencing, first)
			one, other, next := c.client(three, replaced, 0), c.client(three, replaced, 0), c.client(replaced, nil, 0)
			require.NoError(t, one.ReadyAll(t.Context()))
			two(one.ChangeFencing, other.ChangeFencing, next)
		})
	}
}
