package floor

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/bench/harness"
	"github.com/redlock-go/redlock/bench/result"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/wire/command"
	"github.com/redlock-go/redlock/resp"
)

// cell is a cell on embedded masters, with keys of a fixed form.
func cell(addrs []string, concurrency int) harness.Config {
	cfg := harness.Config{Nodes: addrs, TTL: 10 * time.Second, Scenario: harness.Uncontended, Concurrency: concurrency}
	for i := range concurrency {
		cfg.Keys = append(cfg.Keys, []string{fmt.Sprint("a", i), fmt.Sprint("b", i)})
	}
	return cfg
}

// measure measures for as long as it takes on a busy machine until a pair was counted.
func measure(t *testing.T, d Driver, cfg harness.Config, strike *harness.Disturbance) (r result.Result, err error) {
	for window := 20 * time.Millisecond; err == nil && r.Pairs == 0 && window < time.Minute; window *= 4 {
		r, err = harness.Measure(t.Context(), d, cfg, harness.Timing{Window: window, Disturbance: strike})
	}
	return r, err
}

func TestEveryShapeOfCell(t *testing.T) {
	addrs := fakeredis.Addrs(fakeredis.StartN(t, 3))
	for _, d := range []Driver{{}, {Goroutines: true}, {Obliged: true}} {
		for _, c := range []int{1, 2, command.MaxKeys + 1} {
			r, err := measure(t, d, cell(addrs, c), nil)
			require.NoError(t, err, "%s %d", d.Name(), c)
			require.Zero(t, r.Errors)
			require.Positive(t, r.Pairs)
			if d.Name() == "floor" {
				require.Zero(t, uint64(r.Pairs)%uint64(c), "whole batches only")
			}
		}
	}
}

func TestAQuorumIsEnough(t *testing.T) {
	masters := fakeredis.StartN(t, 5)
	cfg := cell(fakeredis.Addrs(masters), 40)
	p := newPlan(cfg)
	w, err := dial(t.Context(), cfg.Nodes, p.setup, p.ready, bytes.Join(p.replies, nil))
	require.NoError(t, err)
	defer w.Close()
	masters[0].Mute()
	masters[3].Mute()
	for i, request := range p.requests {
		require.NoError(t, w.step(request, len(p.replies[i%2])))
	}
	require.Zero(t, w.got[0])
	require.NoError(t, masters[0].Heal())
	require.NoError(t, masters[3].Heal())
	w.quorum = 5 // late replies were not lost, and were the right ones
	require.NoError(t, w.await(w.due))
}

// TestNodesThatAreAway: a minority of them is left out, whether it is away from
// the beginning or goes in the middle.
func TestNodesThatAreAway(t *testing.T) {
	for _, d := range []Driver{{}, {Goroutines: true}, {Obliged: true}} {
		masters := fakeredis.StartN(t, 3)
		masters[0].Down()
		cfg := cell(fakeredis.Addrs(masters), 4)
		r, err := measure(t, d, cfg, nil)
		require.NoError(t, err)
		require.Positive(t, r.Pairs)
		require.NoError(t, masters[0].Heal())
		down := &harness.Disturbance{
			Strike: func() error { masters[1].Down(); return nil },
			Heal:   func() error { return masters[1].Heal() },
		}
		r, err = measure(t, d, cfg, down)
		require.NoError(t, err)
		require.Positive(t, r.Pairs)
		masters[0].Down()
		masters[1].Down()
		_, err = measure(t, d, cfg, down)
		require.ErrorContains(t, err, masters[0].Addr(), "no quorum is left")
	}
}

func TestWhatEndsACell(t *testing.T) {
	for _, d := range []Driver{{}, {Goroutines: true}, {Obliged: true}} {
		masters := fakeredis.StartN(t, 1)
		cfg := cell(fakeredis.Addrs(masters), 2)
		timing := harness.Timing{Window: time.Hour, Disturbance: &harness.Disturbance{
			Strike: func() error { masters[0].WrongReply("SET", "$-1\r\n", 1); return nil },
			Heal:   func() error { return nil },
		}}
		_, err := harness.Measure(t.Context(), d, cfg, timing)
		require.ErrorContains(t, err, "$-1")
		timing.Disturbance.Strike = func() error { masters[0].DropConn("SET", 1); return nil }
		_, err = harness.Measure(t.Context(), d, cfg, timing)
		require.ErrorContains(t, err, masters[0].Addr())
		masters[0].Deny("SCRIPT|LOAD")
		_, err = d.Open(t.Context(), cfg)
		require.ErrorContains(t, err, "NOPERM")
	}
}

// A request larger than a socket's buffer is written in pieces, while the replies
// are read.
func TestAHugeRequest(t *testing.T) {
	const pings = 20_000
	payload := strings.Repeat("x", 1000)
	ping, pong := resp.AppendCommand(nil, "PING", payload), fmt.Appendf(nil, "$%d\r\n%s\r\n", len(payload), payload)
	w, err := dial(t.Context(), fakeredis.Addrs(fakeredis.StartN(t, 1)), ping, pong, pong)
	require.NoError(t, err)
	defer w.Close()
	require.NoError(t, w.send(bytes.Repeat(ping, pings)))
	require.NoError(t, w.await(int64(pings*len(pong))))
}
