package engine

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/quorum"
	"github.com/redlock-go/redlock/resp"
)

// scriptedFleet is a Fleet whose replies a test gives by hand, and the engine on it,
// without goroutines.
type scriptedFleet struct {
	speaks      []conn.Form // by node; nil is scripts, of all
	quarantined quorum.Set  // nodes without a vote, a bit each
	reconnects  uint64      // of each node
	t           *testing.T
	engine      *Engine
	clock       *testkit.Clock
	nodes       int
	sent        []*sentBatch
	down        quorum.Set // nodes without a connection, a bit each
	closed      bool
	calling     bool
	doubts      bool            // replies come behind a server's word that all its keys are gone
	noted       []time.Duration // TTLs
	armed       int             // late ones too
	armedLate   int
	arrived     func() // for the next Sweep
	onSweep     func()
	onArm       func()
}

// sentBatch is one batch as it was sent. Of a retry, only one node has it.
type sentBatch struct {
	batch   *conn.Batch
	bytes   string
	next    []int // by node: the reply that comes next, or -1 when it is done
	waiting int
}

func newScripted(t *testing.T, nodes int) *scriptedFleet {
	p := &scriptedFleet{t: t, nodes: nodes, clock: new(testkit.Clock)}
	p.engine = New(Config{Clock: p.clock, MaxWaiting: 4, Timeout: 20 * time.Millisecond})
	attach(p.engine, p)
	p.engine.callbacks.wake = p.callBack
	return p
}

func (p *scriptedFleet) Len() int                { return p.nodes }
func (p *scriptedFleet) Early() quorum.Set       { return quorum.First((p.nodes - 1) / 2) }
func (p *scriptedFleet) CanBlock() bool          { return p.onSweep != nil }
func (p *scriptedFleet) Check()                  {}
func (p *scriptedFleet) Wait() bool              { return false }
func (p *scriptedFleet) Drain()                  {}
func (p *scriptedFleet) Wake()                   {}
func (p *scriptedFleet) Want()                   {}
func (p *scriptedFleet) NoteTTL(d time.Duration) { p.noted = append(p.noted, d) }

// Arm is the last step of a driver before it unlocks.
func (p *scriptedFleet) Arm(late bool) {
	p.armed++
	if late {
		p.armedLate++
	}
	if f := p.onArm; f != nil {
		p.onArm = nil
		f()
	}
}

func (p *scriptedFleet) Sweep(time.Duration) {
	if f := p.arrived; f != nil {
		p.arrived = nil
		f()
	} else if p.onSweep != nil {
		p.onSweep()
	}
}

func (p *scriptedFleet) Close() {
	p.closed = true
	for _, s := range p.sent {
		for node := range p.nodes {
			p.fail(s, node, conn.ErrClosed)
		}
	}
}

// callBack does the work of the goroutine of callbacks when it is woken.
func (p *scriptedFleet) callBack() {
	c := &p.engine.callbacks
	select {
	case c.woken <- struct{}{}:
	default:
	}
	if p.calling {
		return
	}
	p.calling = true
	defer func() { p.calling = false }()
	for len(c.woken) > 0 {
		<-c.woken
		p.engine.callTurn(c.caller)
	}
}

func (p *scriptedFleet) Fault(node int) error {
	if p.down>>node&1 == 1 {
		return errDown
	}
	return nil
}

func (p *scriptedFleet) Quarantined() quorum.Set                 { return p.quarantined }
func (p *scriptedFleet) QuarantinedFor(time.Duration) quorum.Set { return p.quarantined }
func (p *scriptedFleet) Away() quorum.Set                        { return p.down }

func (p *scriptedFleet) Forms() (ds []conn.Form) {
	for _, d := range p.speaks {
		if !slices.Contains(ds, d) {
			ds = append(ds, d)
		}
	}
	return ds
}

func (p *scriptedFleet) Node(node int) conn.Node {
	n := conn.Node{Connection: 1 + p.reconnects}
	if p.speaks != nil {
		n.Form = p.speaks[node]
	}
	return n
}

func (p *scriptedFleet) SetForm(node int, f conn.Form) { p.speaks[node] = f }

// Send makes a sentBatch of each form, which only those that speak it have.
func (p *scriptedFleet) Send(b *conn.Batch) {
	var batches []*sentBatch
	for ; b != nil; b = b.Next {
		s := &sentBatch{b, string(b.Buf), make([]int, p.nodes), 1}
		for node := range p.nodes {
			s.next[node] = -1
			if p.Node(node).Form == b.Form {
				s.next[node] = 0
				s.waiting++
			}
		}
		batches = append(batches, s)
	}
	p.sent = append(p.sent, batches...)
	for _, s := range batches {
		for node := range p.nodes {
			if p.closed {
				p.fail(s, node, &unsentError{conn.ErrClosed})
			} else if p.down>>node&1 == 1 {
				p.fail(s, node, errDown)
			}
		}
		p.done(s)
	}
}

func (p *scriptedFleet) SendTo(node int, b *conn.Batch) {
	s := &sentBatch{b, string(b.Buf), make([]int, p.nodes), 1}
	for i := range s.next {
		s.next[i] = -1
	}
	s.next[node] = 0
	p.sent = append(p.sent, s)
	if p.down>>node&1 == 1 {
		p.fail(s, node, errDown)
	}
}

func (p *scriptedFleet) done(s *sentBatch) {
	s.waiting--
	if s.waiting == 0 {
		s.batch.Owner.Done()
	}
}

// fail ends what a node owes for s.
func (p *scriptedFleet) fail(s *sentBatch, node int, err error) {
	if i := s.next[node]; i >= 0 {
		s.next[node] = -1
		s.batch.Owner.Fail(node, i, err)
		p.done(s)
	}
}

// reply gives a node's next replies. One that does not fit ends them.
func (p *scriptedFleet) reply(s *sentBatch, node int, wires ...string) (misfit error) {
	for _, wire := range wires {
		v := value(wire)
		i := s.next[node]
		require.GreaterOrEqual(p.t, i, 0, "the node has answered already")
		s.next[node]++
		if s.next[node] == s.batch.Replies {
			s.next[node] = -1
		}
		misfit = nil
		if p.doubts {
			misfit = s.batch.Doubter.Doubted(node, i, &v)
		} else if usual := strings.SplitAfter(string(s.batch.Usual), "\n"); len(usual) > i && usual[i] == wire { // as package conn does
			s.batch.Counter.AsUsual(node, i, 1)
		} else {
			misfit = s.batch.Owner.Reply(node, i, &v)
		}
		if s.next[node] < 0 {
			p.done(s)
		} else if misfit != nil {
			p.fail(s, node, misfit)
		}
		if misfit != nil {
			return misfit
		}
	}
	return nil
}

// all is a turn in which every node gives these replies.
func (p *scriptedFleet) all(s *sentBatch, wires ...string) {
	p.turn(func() {
		for node := range p.nodes {
			p.reply(s, node, wires...)
		}
	})
}

// turn is a turn of the reader, which finds that f has happened.
func (p *scriptedFleet) turn(f func()) {
	p.arrived = f
	p.engine.receive(func(int) {})
}

// tick lets d pass and the watchdog look.
func (p *scriptedFleet) tick(d time.Duration) {
	p.clock.Advance(d)
	p.turn(func() { p.engine.tick() })
}

func (p *scriptedFleet) last() *sentBatch {
	require.NotEmpty(p.t, p.sent, "nothing was sent")
	return p.sent[len(p.sent)-1]
}

// idle requires that nothing is under way and nothing was kept.
func (p *scriptedFleet) idle() {
	p.t.Helper()
	e := p.engine
	require.Zero(p.t, e.queue.depth.Load(), "depth")
	require.Zero(p.t, e.queue.size.Load(), "queued")
	require.Zero(p.t, e.ledger.undecided, "undecided")
	require.Zero(p.t, e.nodes.unanswered.Inside(), "unanswered")
	require.Zero(p.t, e.ledger.window.inside, "inside the window")
	require.True(p.t, e.ledger.window.isOpen.Load(), "the window is shut")
	require.True(p.t, e.lock.TryLock(), "the driver lock is held")
	e.lock.Unlock()
}

const (
	ok     = "+OK\r\n"
	null   = "$-1\r\n"
	one    = "*1\r\n:1\r\n"
	zero   = "*1\r\n:0\r\n"
	noSuch = "-NOSCRIPT No matching script.\r\n"
)

type countedOp struct {
	Op
	times int
	then  func()
}

func (o *countedOp) Complete(*Op) {
	o.times++
	if o.then != nil {
		o.then()
	}
}

func (p *scriptedFleet) op(kind Kind, key string) *countedOp {
	o := &countedOp{}
	o.Kind, o.Key, o.TTL, o.Done, o.Token = kind, []byte(key), time.Second, o, tokenOf(7)
	return o
}

// queue is op, queued without the drive after it.
func (p *scriptedFleet) queue(kind Kind, key string) *countedOp {
	o := p.op(kind, key)
	require.NoError(p.t, p.engine.queueOne(&o.Op))
	return o
}

func (p *scriptedFleet) batch(kind Kind, keys ...string) (ops []*countedOp) {
	for _, key := range keys {
		ops = append(ops, p.queue(kind, key))
	}
	before := len(p.sent)
	p.turn(func() {})
	require.Len(p.t, p.sent, before+1)
	return ops
}

func (p *scriptedFleet) submit(kind Kind, key string) *countedOp {
	o := p.op(kind, key)
	require.NoError(p.t, p.engine.Submit(&o.Op))
	return o
}

func (p *scriptedFleet) ask(node int, timeout time.Duration) *Query {
	q := p.engine.Query(node, timeout)
	q.Buf, q.Replies = append(q.Buf, "x"...), 1
	p.engine.Ask(q)
	return q
}

// queueOne is Submit without the drive after it.
func (e *Engine) queueOne(op *Op) error {
	if err := e.check(op); err != nil {
		return err
	}
	var l list
	l.push(op)
	return e.enqueue(l)
}

var errLost = errors.New("connection lost")

// errDown is the fault of a node that has none.
var errDown = &unsentError{errors.New("node is down")}

type unsentError struct{ cause error }

func (e *unsentError) Error() string   { return e.cause.Error() }
func (e *unsentError) Unwrap() []error { return []error{e.cause, conn.ErrNotSent} }

func value(wire string) (v resp.Value) {
	var d resp.Decoder
	if _, err := d.Decode([]byte(wire), &v); err != nil {
		panic(err)
	}
	return v
}

// attach is Engine.Start without its goroutines, and every node comes up.
func attach(e *Engine, f Fleet) {
	e.nodes.start(f)
	for i := range f.Len() {
		e.NodeUp(i)
	}
}
