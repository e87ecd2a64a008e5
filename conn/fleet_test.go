package conn

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/base/knobs"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/scripted"
	"github.com/redlock-go/redlock/internal/wire/command"
	"github.com/redlock-go/redlock/resp"
)

func probeAll(ask func(func(*resp.Value) error, ...string)) func() uint16 {
	return command.Probe(false, nil, ask)
}

// probeShortly is of a fleet in tests. It ends with the one script that every scripted server expects.
func probeShortly(ask func(func(*resp.Value) error, ...string)) func() uint16 {
	asked := 0
	return probeAll(func(answer func(*resp.Value) error, words ...string) {
		asked++
		if asked <= 3 {
			ask(answer, words...)
		}
	})
}

func encode(args ...string) []byte { return resp.AppendCommand(nil, args...) }

// testFleet is a fleet with its lock, a clock that stands still, and no pause
// between dials.
type testFleet struct {
	*Fleet
	t     *testing.T
	lock  sync.Mutex
	clock *testkit.Clock
	peers []*scripted.Server
	wires []*scripted.Conn // by node, since the last up
	sent  []*ledger
}

func newTestFleet(t *testing.T, portable bool, peers []*scripted.Server, set ...func(*Config)) *testFleet {
	t.Helper()
	r := &testFleet{t: t, clock: new(testkit.Clock), peers: peers, wires: make([]*scripted.Conn, len(peers))}
	cfg := Config{
		Portable:    portable,
		DialTimeout: testkit.Patience,

		MaxInFlightBytes: 1 << 30, // some tests fill the kernel's buffers, and more
		Probes:           probeShortly,
		knobs:            &knobs.Conn{Clock: r.clock, Rand: func() float64 { return 0 }},

		permanentPause: time.Millisecond,
	}
	for _, p := range peers {
		a, err := ParseAddresses([]string{p.URL()})
		require.NoError(t, err)
		cfg.Addresses = append(cfg.Addresses, a...)
	}
	for _, f := range set {
		f(&cfg)
	}
	var err error
	r.Fleet, err = New(cfg, &r.lock)
	require.NoError(t, err)
	t.Cleanup(r.close)
	return r
}

// newUpFleet is a testFleet with n peers, all of which are connected.
func newUpFleet(t *testing.T, portable bool, n int, set ...func(*Config)) *testFleet {
	t.Helper()
	r := newTestFleet(t, portable, scripted.NewN(t, n), set...)
	r.up()
	return r
}

// onBothPaths runs a test of a fleet with n peers, all of which are connected.
func onBothPaths(t *testing.T, n int, test func(t *testing.T, r *testFleet)) {
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) { test(t, newUpFleet(t, portable, n)) })
}

// close ends the fleet and checks what Close promises.
func (r *testFleet) close() {
	r.do(r.Close)
	r.Drain()
	for _, l := range r.sent {
		assert.Equal(r.t, 1, l.doneCalls, "Done is called once for each batch")
	}
}

// do calls f as the fleet's owner.
func (r *testFleet) do(f func()) {
	r.lock.Lock()
	defer r.lock.Unlock()
	f()
}

// until sweeps until something is so, and checks it as the owner.
func (r *testFleet) until(what string, is func() bool) {
	r.t.Helper()
	testkit.Await(r.t, what, func() bool {
		r.lock.Lock()
		defer r.lock.Unlock()
		r.Sweep(0)
		return is()
	})
}

// up waits until every node is up, and takes the server's ends of those that
// were not.
func (r *testFleet) up() {
	r.t.Helper()
	for i, p := range r.peers {
		if r.wires[i] == nil {
			r.wires[i] = p.Next(r.t)
		}
		r.until(fmt.Sprintf("for node %d to come up", i), func() bool { return r.Up(i) })
	}
}

// lose waits until a node is down; up finds it again.
func (r *testFleet) lose(node int) {
	r.t.Helper()
	s := r.socket(node)
	r.until(fmt.Sprintf("for node %d to go down", node), func() bool { return r.nodes[node].sock != s })
	r.wires[node] = nil
}

// Up reports whether a node has a connection. The caller is the owner.
func (r *testFleet) Up(node int) bool { return r.nodes[node].sock != nil && !r.nodes[node].isResting() }

// Fault is why a node is down, or nil. The caller is the owner.
func (r *testFleet) Fault(node int) error {
	if n := r.nodes[node]; n.sock == nil {
		return n.cause
	}
	return nil
}

func (r *testFleet) socket(node int) sock {
	r.lock.Lock()
	defer r.lock.Unlock()
	return r.nodes[node].sock
}

// send sends a batch of one command for each tag to all nodes.
func (r *testFleet) send(tags ...string) *ledger {
	return r.post(newLedger(r.t, tags))
}

func (r *testFleet) post(l *ledger) *ledger {
	r.do(func() { r.give(l) })
	return l
}

// give is post for a caller that holds the lock.
func (r *testFleet) give(l *ledger) {
	l.nodes = make([]account, r.Len())
	l.due = r.Len()
	r.sent = append(r.sent, l)
	r.Send(&l.Batch)
}

// sendLarge is send with commands that have something to carry.
func (r *testFleet) sendLarge(size int, tags ...string) *ledger {
	l := newLedger(r.t, tags)
	l.Buf = l.Buf[:0]
	for _, tag := range tags {
		l.Buf = append(l.Buf, encode("ECHO", tag, strings.Repeat("x", size))...)
	}
	return r.post(l)
}

func (r *testFleet) sendTo(node int, tags ...string) *ledger {
	l := newLedger(r.t, tags)
	r.do(func() { r.giveTo(node, l) })
	return l
}

// giveTo is sendTo for a caller that holds the lock.
func (r *testFleet) giveTo(node int, l *ledger) {
	l.nodes = make([]account, r.Len())
	l.due = 1
	r.sent = append(r.sent, l)
	r.SendTo(node, &l.Batch)
}

func (r *testFleet) awaitDone(ls ...*ledger) {
	r.t.Helper()
	for _, l := range ls {
		r.until(fmt.Sprintf("for batch %.40q to be done", l.tags), func() bool { return l.doneCalls > 0 })
	}
}

// works sends a batch to all nodes and has all of them answer it well.
func (r *testFleet) works() {
	r.t.Helper()
	l := r.send("works")
	r.answer(l)
	r.awaitDone(l)
	for i := range r.wires {
		require.NoError(r.t, l.nodes[i].err)
	}
}

// answer has nodes answer a batch well; without a list of nodes all of them.
func (r *testFleet) answer(l *ledger, nodes ...int) {
	for i, w := range r.wires {
		if len(nodes) == 0 || slices.Contains(nodes, i) {
			w.Expect(string(l.Buf))
			w.Send(echoes(l.tags...))
		}
	}
}

// meanwhile runs f, which plays the servers, while the fleet is swept: what the
// kernel did not take at once needs that.
func (r *testFleet) meanwhile(f func()) {
	r.t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	r.until("for the servers", func() bool {
		select {
		case <-done:
			return true
		default:
			return false
		}
	})
}

func tagsOf(n int) []string {
	tags := make([]string, n)
	for i := range tags {
		tags[i] = fmt.Sprint("tag-", i)
	}
	return tags
}
