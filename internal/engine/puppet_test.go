package engine

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/clock"
	"github.com/redlock-go/redlock/resp"
)

// puppet is a Fleet whose replies a test gives by hand, and the engine on it,
// without goroutines.
type puppet struct {
	plain
	speaks  []conn.Form // by node; nil is scripts, of all
	guarded uint64      // nodes without a vote, a bit each
	t       *testing.T
	engine  *Engine
	clock   *clock.Fake
	nodes   int
	sent    []*shot
	down    uint64 // nodes without a connection, a bit each
	closed  bool
	calling bool
	woken   bool
	armed   int
	checks  int
	arrived func() // for the next Sweep
	onSweep func()
	onArm   func()
}

// shot is one batch as it was sent. Of a retry, only one node has it.
type shot struct {
	batch   *conn.Batch
	bytes   string
	next    []int // by node: the reply that comes next, or -1 when it is done
	waiting int
}

func newPuppet(t *testing.T, nodes int) *puppet {
	p := &puppet{t: t, nodes: nodes, clock: clock.NewFake()}
	p.engine = New(Config{Clock: p.clock, MaxWaiting: 4, Timeout: 20 * time.Millisecond})
	attach(p.engine, p)
	p.engine.callbacks.wake = p.callBack
	return p
}

func (p *puppet) Len() int       { return p.nodes }
func (p *puppet) CanBlock() bool { return p.onSweep != nil }
func (p *puppet) Check()         { p.checks++ }
func (p *puppet) Wait() bool     { return false }
func (p *puppet) Drain()         {}

// Arm is the last that a driver does before it gives the role up.
func (p *puppet) Arm() {
	p.armed++
	if f := p.onArm; f != nil {
		p.onArm = nil
		f()
	}
}

func (p *puppet) Sweep(time.Duration) {
	if f := p.arrived; f != nil {
		p.arrived = nil
		f()
	} else if p.onSweep != nil {
		p.onSweep()
	}
}

func (p *puppet) Close() {
	p.closed = true
	for _, s := range p.sent {
		for node := range p.nodes {
			p.fail(s, node, conn.ErrClosed)
		}
	}
}

// callBack is what the goroutine of callbacks does when it is woken.
func (p *puppet) callBack() {
	if p.woken = true; p.calling {
		return
	}
	p.calling = true
	defer func() { p.calling = false }()
	for p.woken {
		p.woken = false
		p.engine.callTurn(p.engine.callbacks.caller)
	}
}

func (p *puppet) Fault(node int) error {
	if p.down>>node&1 == 1 {
		return errDown
	}
	return nil
}

func (p *puppet) Quarantined() uint64 { return p.guarded }
func (p *puppet) Away() uint64        { return p.down }

func (p *puppet) Forms() (ds []conn.Form) {
	for _, d := range p.speaks {
		if !slices.Contains(ds, d) {
			ds = append(ds, d)
		}
	}
	return ds
}

func (p *puppet) Form(node int) (d conn.Form) {
	if p.speaks != nil {
		d = p.speaks[node]
	}
	return d
}

func (p *puppet) SetForm(node int, f conn.Form) { p.speaks[node] = f }

// Send makes a shot of each dialect, which only those that speak it have.
func (p *puppet) Send(b *conn.Batch) {
	var shots []*shot
	for ; b != nil; b = b.Next {
		s := &shot{b, string(b.Buf), make([]int, p.nodes), 1}
		for node := range p.nodes {
			if s.next[node] = -1; p.Form(node) == b.Form {
				s.next[node] = 0
				s.waiting++
			}
		}
		shots = append(shots, s)
	}
	p.sent = append(p.sent, shots...)
	for _, s := range shots {
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

func (p *puppet) SendTo(node int, b *conn.Batch) {
	s := &shot{b, string(b.Buf), make([]int, p.nodes), 1}
	for i := range s.next {
		s.next[i] = -1
	}
	s.next[node] = 0
	p.sent = append(p.sent, s)
	if p.down>>node&1 == 1 {
		p.fail(s, node, errDown)
	}
}

func (p *puppet) done(s *shot) {
	if s.waiting--; s.waiting == 0 {
		s.batch.Owner.Done()
	}
}

// fail ends what a node owes for s.
func (p *puppet) fail(s *shot, node int, err error) {
	if i := s.next[node]; i >= 0 {
		s.next[node] = -1
		s.batch.Owner.Fail(node, i, err)
		p.done(s)
	}
}

// reply gives a node's next replies. One that does not fit ends them.
func (p *puppet) reply(s *shot, node int, wires ...string) (misfit error) {
	for _, wire := range wires {
		var d resp.Decoder
		var v resp.Value
		_, err := d.Decode([]byte(wire), &v)
		require.NoError(p.t, err)
		i := s.next[node]
		require.GreaterOrEqual(p.t, i, 0, "the node has answered already")
		if s.next[node]++; s.next[node] == s.batch.Replies {
			s.next[node] = -1
		}
		misfit = s.batch.Owner.Reply(node, i, &v)
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

// turn is a turn of the reader, which finds that f has happened.
func (p *puppet) turn(f func()) {
	p.arrived = f
	p.engine.receive(func(int) {})
}

// tick lets d pass and the watchdog look.
func (p *puppet) tick(d time.Duration) {
	p.clock.Advance(d)
	p.turn(func() { p.engine.tick() })
}

func (p *puppet) last() *shot {
	require.NotEmpty(p.t, p.sent, "nothing was sent")
	return p.sent[len(p.sent)-1]
}

// idle requires that nothing is under way and nothing was kept.
func (p *puppet) idle() {
	p.t.Helper()
	e := p.engine
	require.Zero(p.t, e.depth.Load(), "depth")
	require.Zero(p.t, e.queue.size.Load(), "queued")
	require.Zero(p.t, e.undecided, "undecided")
	require.Zero(p.t, e.unanswered, "unanswered")
	require.Zero(p.t, e.window.inside, "inside the gate")
	require.True(p.t, e.window.isOpen.Load(), "the gate is closed")
	require.True(p.t, e.driver.TryLock(), "somebody has the role")
	e.driver.Unlock()
}

const (
	ok     = "+OK\r\n"
	null   = "$-1\r\n"
	one    = "*1\r\n:1\r\n"
	zero   = "*1\r\n:0\r\n"
	noSuch = "-NOSCRIPT No matching script.\r\n"
)

// outcome is a Completion that counts.
type outcome struct {
	Op
	times int
	then  func()
}

func (o *outcome) Complete(*Op) {
	o.times++
	if o.then != nil {
		o.then()
	}
}

func (p *puppet) op(kind Kind, key string) *outcome {
	o := &outcome{}
	o.Kind, o.Key, o.TTL, o.Done, o.Token = kind, []byte(key), time.Second, o, tokenOf(7)
	return o
}

// submit is op with Submit.
func (p *puppet) submit(kind Kind, key string) *outcome {
	o := p.op(kind, key)
	require.NoError(p.t, p.engine.Submit(&o.Op))
	return o
}
