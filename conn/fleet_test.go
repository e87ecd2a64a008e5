package conn

import (
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/clock"
	"github.com/redlock-go/redlock/internal/testkit"
	"github.com/redlock-go/redlock/internal/testkit/scripted"
	"github.com/redlock-go/redlock/resp"
)

// testScript is what every server expects to be loaded.
var testScript = scriptOf("return 1")

func scriptOf(text string) Script {
	sum := sha1.Sum([]byte(text))
	return Script{Text: text, SHA1: hex.EncodeToString(sum[:])}
}

// command is what the client writes for one.
func command(args ...string) []byte { return appendCommand(nil, args...) }

// testFleet is a fleet with its lock, a clock that stands still, and no pause
// between dials.
type testFleet struct {
	*Fleet
	t     *testing.T
	lock  sync.Mutex
	clock *clock.Fake
	peers []*scripted.Server
	wires []*scripted.Conn // by node, since the last up
	sent  []*ledger
}

func newTestFleet(t *testing.T, portable bool, peers []*scripted.Server, set ...func(*Config)) *testFleet {
	t.Helper()
	r := &testFleet{t: t, clock: clock.NewFake(), peers: peers, wires: make([]*scripted.Conn, len(peers))}
	cfg := Config{
		Portable:    portable,
		DialTimeout: testkit.Patience,

		MaxInFlightBytes: 1 << 30, // some tests fill the kernel's buffers, and more
		Scripts:          []Script{testScript},
		Clock:            r.clock,
		Rand:             func() float64 { return 0 },

		permanentPause: time.Millisecond,
	}
	for _, p := range peers {
		a, err := ParseAddress(p.URL())
		require.NoError(t, err)
		cfg.Addresses = append(cfg.Addresses, a)
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

// close ends the fleet and holds it to what it promised.
func (r *testFleet) close() {
	r.do(r.Close)
	r.Drain()
	for _, l := range r.sent {
		assert.Equal(r.t, 1, l.settled, "Settled is called once for each batch")
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

// Up tells whether a node has a connection. The caller is the owner.
func (r *testFleet) Up(node int) bool { return r.nodes[node].sock != nil }

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

// give is post for who is the owner already.
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
		l.Buf = append(l.Buf, command("ECHO", tag, strings.Repeat("x", size))...)
	}
	return r.post(l)
}

// sendTo sends it to one of them.
func (r *testFleet) sendTo(node int, tags ...string) *ledger {
	l := newLedger(r.t, tags)
	r.do(func() { r.giveTo(node, l) })
	return l
}

// giveTo is sendTo for who is the owner already.
func (r *testFleet) giveTo(node int, l *ledger) {
	l.nodes = make([]account, r.Len())
	l.due = 1
	r.sent = append(r.sent, l)
	r.SendTo(node, &l.Batch)
}

// settle sweeps until all is said about a batch.
func (r *testFleet) settle(ls ...*ledger) {
	r.t.Helper()
	for _, l := range ls {
		r.until(fmt.Sprintf("for batch %.40q to settle", l.tags), func() bool { return l.settled > 0 })
	}
}

// works sends a batch to all nodes and has all of them answer it well.
func (r *testFleet) works() {
	r.t.Helper()
	l := r.send("works")
	for _, w := range r.wires {
		w.Expect(string(l.Buf))
		w.Send(echoes("works"))
	}
	r.settle(l)
	for i := range r.wires {
		require.NoError(r.t, l.nodes[i].err)
	}
}

// ledger is a batch and what its owner hears of it. It objects to all that is
// against the rules of Owner.
type ledger struct {
	Batch
	t       *testing.T
	tags    []string
	nodes   []account
	due     int // nodes that have not ended
	settled int

	lenient bool // a reply that does not fit is refused, as it should be
	onReply func(node, i int) error
	onFail  func(node, i int, err error)
}

var errMisfit = errors.New("reply does not fit")

// account is what is known of one node.
type account struct {
	replies int
	ended   bool
	err     error
}

func newLedger(t *testing.T, tags []string) *ledger {
	l := &ledger{t: t, tags: tags}
	for _, tag := range tags {
		l.Buf = append(l.Buf, command("ECHO", tag)...)
	}
	l.Replies = len(tags)
	l.Owner = l
	return l
}

// echoes are the replies to commands with these tags.
func echoes(tags ...string) string {
	var b []byte
	for _, tag := range tags {
		b = resp.AppendBulkString(b, tag)
	}
	return string(b)
}

func (l *ledger) Reply(node, i int, v *resp.Value) error {
	a := &l.nodes[node]
	assert.Zero(l.t, l.settled, "a reply after Settled")
	assert.False(l.t, a.ended, "a reply after the last, or after Fail")
	assert.Equal(l.t, a.replies, i, "replies come in order")
	misfit := string(v.Bytes) != l.tags[i] || v.Kind != resp.Bulk || v.Null
	if misfit && !l.lenient {
		assert.Failf(l.t, "misplaced", "node %d, reply %d: %.40q for %.40q", node, i, v.Bytes, l.tags[i])
	}
	a.replies++
	if a.replies == l.Replies {
		l.end(a)
	}
	if misfit {
		return errMisfit
	}
	if l.onReply != nil {
		return l.onReply(node, i)
	}
	return nil
}

func (l *ledger) Fail(node, i int, err error) {
	a := &l.nodes[node]
	assert.Zero(l.t, l.settled, "a failure after Settled")
	assert.False(l.t, a.ended, "a failure after the last reply, or a second one")
	assert.Equal(l.t, a.replies, i, "Fail begins behind the last reply")
	assert.Error(l.t, err)
	a.err = err
	l.end(a)
	if l.onFail != nil {
		l.onFail(node, i, err)
	}
}

func (l *ledger) end(a *account) {
	a.ended = true
	l.due--
}

func (l *ledger) Settled() {
	l.settled++
	assert.Zero(l.t, l.due, "settled before every node has ended")
}

// errOf is why a node failed, or nil.
func (l *ledger) errOf(node int) error { return l.nodes[node].err }

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
