package engine

import (
	"bytes"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/clock"
	"github.com/redlock-go/redlock/internal/command"
	"github.com/redlock-go/redlock/resp"
)

// memoryFleet is a Fleet with a goroutine for each node, which executes what it is sent
// on keys in memory (without TTLs) and replies when it gets to it.
type memoryFleet struct {
	plain
	nodes   []*memoryNode
	blocks  bool
	closed  bool // the driver's
	ready   chan int
	bell    chan struct{}
	armed   atomic.Bool
	ended   chan struct{}
	running sync.WaitGroup
	jitter  bool
	engine  *Engine
}

type memoryNode struct {
	mu       sync.Mutex
	keys     map[string]string
	released int
	held     chan struct{} // while not nil, nobody replies before it is closed
	index    int
	work     chan []byte
	owed     []*memoryDebt // the driver's
	mail     sync.Mutex
	inbox    [][]byte
}

type memoryDebt struct {
	batch *conn.Batch
	next  int
}

func newMemory(nodes int, blocks bool) *memoryFleet {
	f := &memoryFleet{blocks: blocks, ready: make(chan int, 1<<16), bell: make(chan struct{}, 1), ended: make(chan struct{})}
	for i := range nodes {
		f.nodes = append(f.nodes, &memoryNode{index: i, keys: map[string]string{}, work: make(chan []byte, 1<<12)})
	}
	return f
}

// start makes an engine on it, and sees to it that no goroutine is left.
func (f *memoryFleet) start(t *testing.T) *Engine {
	t.Helper()
	before := runtime.NumGoroutine()
	f.running.Add(len(f.nodes))
	for _, n := range f.nodes {
		go f.serve(n)
	}
	f.engine = New(Config{Clock: clock.System(), MaxWaiting: 1 << 16, Timeout: time.Minute})
	f.engine.Start(f)
	t.Cleanup(func() {
		if !f.closed {
			f.engine.Close(0)
		}
		close(f.ended)
		f.running.Wait()
		for i := 0; runtime.NumGoroutine() > before; i++ {
			runtime.Gosched() // those that have ended, but are still counted
			require.Less(t, i, 1_000_000, "a goroutine is left")
		}
	})
	return f.engine
}

func (f *memoryFleet) serve(n *memoryNode) {
	defer f.running.Done()
	for {
		select {
		case <-f.ended:
			return
		case buf := <-n.work:
			replies := n.execute(buf)
			n.mu.Lock()
			held := n.held
			n.mu.Unlock()
			if held != nil {
				select {
				case <-held:
				case <-f.ended:
					return
				}
			}
			if f.jitter {
				runtime.Gosched()
			}
			n.mail.Lock()
			n.inbox = append(n.inbox, replies...)
			n.mail.Unlock()
			f.ready <- n.index
			f.ring()
		}
	}
}

// execute runs a batch on the node's keys.
func (n *memoryNode) execute(buf []byte) (replies [][]byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	eachCommand(buf, func(_ string, kind Kind, operands []command.Operand) {
		reply := resp.AppendArray(nil, len(operands))
		for _, o := range operands {
			holder, isTaken := n.keys[string(o.Key)]
			switch {
			case kind == Acquire && isTaken:
				reply = []byte(null)
			case kind == Acquire:
				n.keys[string(o.Key)], reply = string(o.Token), []byte(ok)
			case holder != string(o.Token):
				reply = resp.AppendInteger(reply, 0)
			default:
				reply = resp.AppendInteger(reply, 1)
				if kind == Release {
					delete(n.keys, string(o.Key))
					n.released++
				}
			}
		}
		replies = append(replies, reply)
	})
	return replies
}

func (f *memoryFleet) ring() {
	if !f.blocks || f.armed.Swap(false) {
		f.wake()
	}
}

func (f *memoryFleet) wake() {
	select {
	case f.bell <- struct{}{}:
	default:
	}
}

func (f *memoryFleet) Len() int       { return len(f.nodes) }
func (f *memoryFleet) CanBlock() bool { return f.blocks }
func (f *memoryFleet) Check()         {}
func (f *memoryFleet) Drain()         {}

func (f *memoryFleet) SendTo(int, *conn.Batch) { panic("no script is ever lost") }

func (f *memoryFleet) Send(b *conn.Batch) {
	for _, n := range f.nodes {
		if f.closed {
			b.Owner.Fail(n.index, 0, &unsentError{conn.ErrClosed})
			continue
		}
		n.owed = append(n.owed, &memoryDebt{batch: b})
		n.work <- bytes.Clone(b.Buf) // a node runs on when the fleet is closed
	}
	if f.closed {
		b.Owner.Done()
	}
}

// Sweep reads what has arrived, after a wait for it where it may.
func (f *memoryFleet) Sweep(d time.Duration) {
	if f.closed {
		return
	}
	if d > 0 && f.blocks {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case i := <-f.ready:
			f.receive(f.nodes[i])
		case <-timer.C:
		}
	}
	for {
		select {
		case i := <-f.ready:
			f.receive(f.nodes[i])
		default:
			return
		}
	}
}

func (f *memoryFleet) receive(n *memoryNode) {
	n.mail.Lock()
	inbox := n.inbox
	n.inbox = nil
	n.mail.Unlock()
	for _, wire := range inbox {
		var d resp.Decoder
		var v resp.Value
		if _, err := d.Decode(wire, &v); err != nil {
			panic(err)
		}
		debt := n.owed[0]
		i := debt.next
		debt.next++
		if err := debt.batch.Owner.Reply(n.index, i, &v); err != nil {
			panic(err)
		}
		if debt.next == debt.batch.Replies {
			n.owed = n.owed[1:]
			f.settle(debt.batch)
		}
	}
}

// Wake ends a Wait after Arm, as an arrival does. Without it results that the watchdog
// has read would wait for their reader for ever.
func (f *memoryFleet) Wake() { f.ring() }

// settle tells the owner when no node owes anything for b.
func (f *memoryFleet) settle(b *conn.Batch) {
	for _, n := range f.nodes {
		for _, d := range n.owed {
			if d.batch == b {
				return
			}
		}
	}
	b.Owner.Done()
}

// Arm has the next arrival wake the reader; one that came before counts.
func (f *memoryFleet) Arm() {
	f.armed.Store(true)
	if len(f.ready) > 0 {
		f.ring()
	}
}

func (f *memoryFleet) Wait() bool {
	<-f.bell
	select {
	case <-f.ended:
		return false
	default:
	}
	f.engine.driver.Lock()
	defer f.engine.driver.Unlock()
	return !f.closed
}

func (f *memoryFleet) Close() {
	f.closed = true
	for _, n := range f.nodes {
		owed := n.owed
		n.owed = nil
		for _, d := range owed {
			d.batch.Owner.Fail(n.index, d.next, conn.ErrClosed)
			f.settle(d.batch)
		}
	}
	f.wake()
}

// hold keeps all replies back until release.
func (f *memoryFleet) hold() {
	held := make(chan struct{})
	for _, n := range f.nodes {
		n.mu.Lock()
		n.held = held
		n.mu.Unlock()
	}
}

func (f *memoryFleet) release() {
	for i, n := range f.nodes {
		n.mu.Lock()
		if i == 0 {
			close(n.held)
		}
		n.held = nil
		n.mu.Unlock()
	}
}

// count is how many nodes have a key that begins with prefix.
func (f *memoryFleet) count(prefix string) (keys int) {
	for _, n := range f.nodes {
		n.mu.Lock()
		for key := range n.keys {
			if strings.HasPrefix(key, prefix) {
				keys++
			}
		}
		n.mu.Unlock()
	}
	return keys
}

func (f *memoryFleet) releases() (sum int) {
	for _, n := range f.nodes {
		n.mu.Lock()
		sum += n.released
		n.mu.Unlock()
	}
	return sum
}

// chanOp is a Completion that sends the operation on.
type chanOp chan *Op

func (c chanOp) Complete(op *Op) { c <- op }

func (c chanOp) acquire(key string) *Op {
	return &Op{Kind: Acquire, Key: []byte(key), TTL: time.Minute, Token: tokenOf(1), Done: c}
}
