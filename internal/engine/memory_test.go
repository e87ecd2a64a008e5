package engine

import (
	"bytes"
	"runtime"
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

// memoryFleet is a Fleet with a goroutine for each node, which executes what it is
// sent on keys in memory (without TTLs) and replies when it gets to it.
type memoryFleet struct {
	plain
	engine   *Engine
	nodes    []*memoryNode
	blocks   bool
	jitter   bool
	closed   bool // the driver's
	arrivals chan arrival
	bell     chan struct{}
	armed    atomic.Bool
	ended    chan struct{}
	running  sync.WaitGroup

	mu       sync.Mutex // of what the nodes have in common, and of their keys
	held     chan struct{}
	released int
}

type memoryNode struct {
	index int
	keys  map[string]string
	work  chan []byte
	owed  []*memoryDebt // the driver's
}

type memoryDebt struct {
	batch *conn.Batch
	next  int
}

// arrival is a node's replies to a batch.
type arrival struct {
	node    *memoryNode
	replies [][]byte
}

func newMemory(nodes int, blocks bool) *memoryFleet {
	f := &memoryFleet{blocks: blocks, arrivals: make(chan arrival, 1<<16), bell: make(chan struct{}, 1), ended: make(chan struct{})}
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
	f.engine = New(Config{Clock: clock.New(), MaxWaiting: 1 << 16, Timeout: time.Minute})
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
			replies, held := f.execute(n, buf)
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
			f.arrivals <- arrival{n, replies}
			f.Wake()
		}
	}
}

// execute runs a batch on a node's keys. The replies wait for held, unless it is nil.
func (f *memoryFleet) execute(n *memoryNode, buf []byte) (replies [][]byte, held chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
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
					f.released++
				}
			}
		}
		replies = append(replies, reply)
	})
	return replies, f.held
}

func (f *memoryFleet) ring() {
	select {
	case f.bell <- struct{}{}:
	default:
	}
}

func (f *memoryFleet) Len() int { return len(f.nodes) }

func (f *memoryFleet) Connection(int) uint64 { return 1 }

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
		case a := <-f.arrivals:
			f.receive(a)
		case <-timer.C:
		}
	}
	for {
		select {
		case a := <-f.arrivals:
			f.receive(a)
		default:
			return
		}
	}
}

func (f *memoryFleet) receive(a arrival) {
	for _, wire := range a.replies {
		v := value(string(wire))
		debt := a.node.owed[0]
		if err := debt.batch.Owner.Reply(a.node.index, debt.next, &v); err != nil {
			panic(err)
		}
		if debt.next++; debt.next == debt.batch.Replies {
			a.node.owed = a.node.owed[1:]
			f.settle(debt.batch)
		}
	}
}

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
	if len(f.arrivals) > 0 {
		f.Wake()
	}
}

// Wake ends a Wait after Arm, as an arrival does. Without it results that the watchdog
// has read would wait for their reader for ever.
func (f *memoryFleet) Wake() {
	if !f.blocks || f.armed.Swap(false) {
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
	f.ring()
}

// hold keeps all replies back until release.
func (f *memoryFleet) hold() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held = make(chan struct{})
}

func (f *memoryFleet) release() {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.held)
	f.held = nil
}

// count is how many keys the nodes have, and how many they have deleted.
func (f *memoryFleet) count() (keys, released int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, n := range f.nodes {
		keys += len(n.keys)
	}
	return keys, f.released
}

// chanOp is a Completion that sends the operation on.
type chanOp chan *Op

func (c chanOp) Complete(op *Op) { c <- op }

func (c chanOp) acquire(key string) *Op {
	return &Op{Kind: Acquire, Key: []byte(key), TTL: time.Minute, Token: tokenOf(1), Done: c}
}
