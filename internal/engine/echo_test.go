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

// echo is a Fleet with a goroutine for each node, which executes what it is sent
// on keys in memory (without TTLs) and replies when it gets to it.
type echo struct {
	plain
	nodes   []*echoNode
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

type echoNode struct {
	mu       sync.Mutex
	keys     map[string]string
	released int
	held     chan struct{} // while not nil, nobody replies before it is closed
	index    int
	work     chan []byte
	owed     []*echoDebt // the driver's
	mail     sync.Mutex
	inbox    [][]byte
}

type echoDebt struct {
	batch *conn.Batch
	next  int
}

func newEcho(nodes int, blocks bool) *echo {
	f := &echo{blocks: blocks, ready: make(chan int, 1<<16), bell: make(chan struct{}, 1), ended: make(chan struct{})}
	for i := range nodes {
		f.nodes = append(f.nodes, &echoNode{index: i, keys: map[string]string{}, work: make(chan []byte, 1<<12)})
	}
	return f
}

// start makes an engine on it, and sees to it that no goroutine is left.
func (f *echo) start(t *testing.T) *Engine {
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

func (f *echo) serve(n *echoNode) {
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
func (n *echoNode) execute(buf []byte) (replies [][]byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var d resp.Decoder
	var v resp.Value
	for len(buf) > 0 {
		size, err := d.Decode(buf, &v)
		if err != nil {
			panic(err)
		}
		buf = buf[size:]
		var words []string
		it := v.Elements()
		for it.Next() {
			words = append(words, string(it.Value().Bytes))
		}
		if words[0] == "SET" {
			if _, taken := n.keys[words[1]]; taken {
				replies = append(replies, []byte(null))
				continue
			}
			n.keys[words[1]] = words[2]
			replies = append(replies, []byte(ok))
			continue
		}
		count := (len(words) - 3) / 2
		if words[1] == command.ExtendSHA1 {
			count = (len(words) - 3) / 3
		}
		reply := resp.AppendArray(nil, count)
		for i, key := range words[3 : 3+count] {
			mine := int64(0)
			if n.keys[key] == words[3+count+i] {
				mine = 1
				if words[1] == command.ReleaseSHA1 {
					delete(n.keys, key)
					n.released++
				}
			}
			reply = resp.AppendInteger(reply, mine)
		}
		replies = append(replies, reply)
	}
	return replies
}

func (f *echo) ring() {
	if !f.blocks || f.armed.Swap(false) {
		f.wake()
	}
}

func (f *echo) wake() {
	select {
	case f.bell <- struct{}{}:
	default:
	}
}

func (f *echo) Len() int       { return len(f.nodes) }
func (f *echo) CanBlock() bool { return f.blocks }
func (f *echo) Check()         {}
func (f *echo) Drain()         {}

func (f *echo) SendTo(int, *conn.Batch) { panic("no script is ever lost") }

func (f *echo) Send(b *conn.Batch) {
	for _, n := range f.nodes {
		if f.closed {
			b.Owner.Fail(n.index, 0, &unsentError{conn.ErrClosed})
			continue
		}
		n.owed = append(n.owed, &echoDebt{batch: b})
		n.work <- bytes.Clone(b.Buf) // a node runs on when the fleet is closed
	}
	if f.closed {
		b.Owner.Done()
	}
}

// Sweep reads what has arrived, after a wait for it where it may.
func (f *echo) Sweep(d time.Duration) {
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

func (f *echo) receive(n *echoNode) {
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
func (f *echo) Wake() { f.ring() }

// settle tells the owner when no node owes anything for b.
func (f *echo) settle(b *conn.Batch) {
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
func (f *echo) Arm() {
	f.armed.Store(true)
	if len(f.ready) > 0 {
		f.ring()
	}
}

func (f *echo) Wait() bool {
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

func (f *echo) Close() {
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
func (f *echo) hold() {
	held := make(chan struct{})
	for _, n := range f.nodes {
		n.mu.Lock()
		n.held = held
		n.mu.Unlock()
	}
}

func (f *echo) release() {
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
func (f *echo) count(prefix string) (keys int) {
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

func (f *echo) releases() (sum int) {
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
