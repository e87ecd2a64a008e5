package served_test

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/bench/served"
	"github.com/redlock-go/redlock/internal/server/frontend"
	"github.com/redlock-go/redlock/internal/test/embedded"
	"github.com/redlock-go/redlock/internal/test/realredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/virtual"
)

// tally is how many histories were explained.
type tally struct{ histories, explained, undecided, commands, unknown int }

// judge looks for an order that explains a history.
func (n *tally) judge(t *testing.T, p *served.Plan, all []porcupine.Operation) {
	n.histories++
	n.commands += len(all)
	for _, o := range all {
		if o.Output.(served.Answer).Unknown {
			n.unknown++
		}
	}
	result := p.Explain(all)
	if result == porcupine.Ok {
		n.explained++
		return
	}
	var text strings.Builder
	slices.SortFunc(all, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	for _, o := range all {
		c, a := o.Input.(served.Command), o.Output.(served.Answer)
		fmt.Fprintf(&text, "%9.3f %9.3f client %d: %v %s %v => %s %v\n", c.Sent.Seconds()*1e3, c.Answered.Seconds()*1e3, o.ClientId, c.Kind, c.Value, c.TTL, a.Text, a.Unknown)
	}
	path := fmt.Sprintf("%s/history-%d-%v.txt", os.TempDir(), p.Seed, p.IsFrontEnd)
	_ = os.WriteFile(path, []byte(text.String()), 0o600)
	if result == porcupine.Unknown {
		n.undecided++
		return
	}
	first := p.FirstUnexplained(all)
	require.Fail(t, "no order on one Redis explains a history", "REDLOCK_SEED=%d, front end: %v, %s, from the answer at %.3f on",
		p.Seed, p.IsFrontEnd, path, first.Seconds()*1e3)
}

// seeds are those of a run: REDLOCK_SEED runs one, or with REDLOCK_SEEDS so many from it on.
func seeds(short, long uint64) (from, to uint64) {
	if seed, err := strconv.ParseUint(os.Getenv("REDLOCK_SEED"), 10, 64); err == nil {
		n, _ := strconv.ParseUint(os.Getenv("REDLOCK_SEEDS"), 10, 64)
		return seed, seed + max(1, n)
	} else if testkit.Long() {
		return 0, long
	}
	return 0, short
}

var sizes = []int{2, 3, 4, 8, 16, 32, 64}

// planOf is what clients do with a seed: some 120 commands, or two of each.
func planOf(seed uint64) *served.Plan {
	clients := sizes[seed%uint64(len(sizes))]
	return &served.Plan{Seed: seed, Clients: clients, Steps: max(2, 120/clients), Slack: served.Slack{Early: 2 * time.Millisecond, Late: 2 * time.Millisecond}}
}

// serve starts a front end of masters, and returns its address.
func serve(t *testing.T, nodes []string) string {
	client, err := redlock.New(redlock.Config{Nodes: nodes, NodeTimeout: 500 * time.Millisecond})
	require.NoError(t, err)
	front := frontend.New(frontend.Config{Client: client, MaxTTL: redlock.MaxTTL})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ended := testkit.Start(func() error { return front.Serve(l) })
	t.Cleanup(func() {
		front.Stop(t.Context())
		<-ended
		_ = client.Close()
	})
	return l.Addr().String()
}

// TestBesideRedis: the same clients at a front end and at one Redis: some order on one Redis explains the answers of each.
func TestBesideRedis(t *testing.T) {
	one := realredis.Start(t, realredis.Options{}).Addr()
	masters, err := embedded.Start(5)
	require.NoError(t, err)
	defer masters.Close()
	several := serve(t, masters.Nodes())
	from, to := seeds(20, 2000)
	var redis, front tally
	for seed := from; seed < to; seed++ {
		for _, at := range []struct {
			addr  string
			tally *tally
		}{{one, &redis}, {several, &front}} {
			p := planOf(seed)
			p.Key, p.IsFrontEnd, p.Pause = fmt.Sprint("history", seed), at.addr == several, 2*time.Millisecond*time.Duration(max(1, p.Clients*p.Clients/32))
			p.TTLs = []time.Duration{30 * time.Millisecond, 10 * time.Second}
			p.T, p.Dial = t, func(int) (net.Conn, error) { return net.Dial("tcp", at.addr) }
			all, err := p.Record()
			require.NoError(t, err, "REDLOCK_SEED=%d", seed)
			at.tally.judge(t, p, all)
		}
	}
	t.Logf("Redis: %+v; front end: %+v", redis, front)
}

// TestVirtually: the same beside masters that are slow, silent, restarted and cut off, a minority at a time, and through two front
// ends that are killed: in virtual time.
func TestVirtually(t *testing.T) {
	from, to := seeds(50, 10_000)
	var n tally
	for seed := from; seed < to; seed++ {
		var p *served.Plan
		var said []porcupine.Operation
		synctest.Test(t, func(t *testing.T) { p, said = inVirtualTime(t, seed) })
		n.judge(t, p, said)
	}
	t.Logf("%+v", n)
	require.LessOrEqual(t, n.undecided, 1+n.histories/100) // the checker has a bound
	require.Less(t, n.unknown, n.commands/4)
}

// virtualTTL bounds the TTLs.
const virtualTTL = 2 * time.Second

func inVirtualTime(t *testing.T, seed uint64) (p *served.Plan, said []porcupine.Operation) {
	p = planOf(seed)
	rng := rand.New(rand.NewPCG(seed, 7))
	w := virtual.New(t, seed, 3+2*rng.IntN(2))
	defer w.Close()
	time.Sleep(virtualTTL + time.Second) // until nodes have been up for long enough to vote
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	fronts := 1 + rng.IntN(2)
	for i := range fronts {
		machine := w.Machine()
		addr := fmt.Sprintf("front%d:6380", i)
		life := time.Hour
		if rng.IntN(4) == 0 {
			life = time.Duration(1+rng.IntN(1000)) * time.Millisecond
		}
		if fronts > 1 || life < time.Hour {
			p.Slack.Late, p.Slack.IsLong = virtualTTL/50+60*time.Millisecond, true
		}
		if fronts > 1 { // an extension by less than the padding of the old TTL does not show at the nodes
			p.Slack.Early = virtualTTL/50 + 2*time.Millisecond
		}
		all.Go(func() {
			for ctx.Err() == nil {
				frontEnd(t, ctx, w, machine, addr, life)
			}
		})
	}
	time.Sleep(10 * time.Millisecond)
	if rng.IntN(2) == 0 {
		all.Go(func() { trouble(ctx, w, rng) })
	}
	p.Key, p.IsFrontEnd = "key", true
	p.Pause = []time.Duration{time.Millisecond, 10 * time.Millisecond, 200 * time.Millisecond}[rng.IntN(3)] * time.Duration(max(1, p.Clients/8))
	p.TTLs = []time.Duration{[]time.Duration{30 * time.Millisecond, 300 * time.Millisecond}[rng.IntN(2)], 900 * time.Millisecond}
	p.T, p.Dial = t, func(client int) (net.Conn, error) {
		return w.Net.Dialer(fmt.Sprint("client", client))(ctx, "tcp", fmt.Sprintf("front%d:6380", client%fronts))
	}
	said, err := p.Record()
	stop()
	all.Wait()
	require.NoError(t, err, "REDLOCK_SEED=%d", seed)
	return p, said
}

// frontEnd is a front end for so long.
func frontEnd(t *testing.T, ctx context.Context, w *virtual.World, machine *virtual.Machine, addr string, life time.Duration) {
	client, err := machine.Client(redlock.Config{Nodes: w.Nodes, MaxTTL: virtualTTL, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	front := frontend.New(frontend.Config{Client: client, MaxTTL: virtualTTL})
	l, err := w.Net.Listen("tcp", addr)
	require.NoError(t, err)
	served := testkit.Start(func() error { return front.Serve(l) })
	ctx, cancel := context.WithTimeout(ctx, life)
	<-ctx.Done()
	cancel()
	front.Stop(ctx) // without time for replies
	<-served
	_ = client.Close()
}

// trouble makes faults of the nodes, a minority at a time.
func trouble(ctx context.Context, w *virtual.World, rng *rand.Rand) {
	upTo := func(most time.Duration) time.Duration { return time.Duration(rng.Int64N(int64(most))) }
	for ctx.Err() == nil {
		s := w.Servers[rng.IntN(len(w.Servers))]
		switch rng.IntN(5) {
		case 0:
			s.Hang()
		case 1:
			s.Mute()
		case 2:
			s.Delay(upTo(45 * time.Millisecond))
		case 3:
			time.Sleep(virtualTTL + 200*time.Millisecond) // no lock is left that another node has missed
			s.Down()
			time.Sleep(upTo(300 * time.Millisecond))
			_ = s.Restart(true)
			time.Sleep(virtualTTL + 500*time.Millisecond) // as an operator waits
		case 4:
			s.ResetConns()
		}
		time.Sleep(upTo(500 * time.Millisecond))
		_ = s.Heal()
		time.Sleep(upTo(200 * time.Millisecond))
	}
}
