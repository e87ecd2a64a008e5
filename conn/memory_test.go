package conn

import (
	"bytes"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlock-go/redlock/quorum"
)

// InMemory has the fleets of a test send to nodes that grant everything at once, in this process and
// without a system call. Their servers see the handshakes alone.
func InMemory(t testing.TB) {
	before := newFastPoller
	newFastPoller = func(int) (poller, bool, error) {
		m := &memory{sent: make(chan struct{}, 1), wakes: make(chan struct{}, 1)}
		go m.deliver()
		return m, false, nil
	}
	t.Cleanup(func() { newFastPoller = before })
}

// memory is the network to such nodes. Replies arrive when all goroutines have had their turn, as they
// do where the nodes have a processor of their own.
type memory struct {
	nodes   [5]*memoryNode
	text    []byte // that was sent last, and the replies to it: a batch has one text for all nodes
	replies []byte
	arrived atomic.Bool
	armed   atomic.Bool
	closed  atomic.Bool
	sent    chan struct{}
	wakes   chan struct{}
}

func (m *memory) deliver() {
	for range m.sent {
		if m.closed.Load() {
			return
		}
		for range 3 {
			runtime.Gosched()
		}
		m.arrived.Store(true)
		if m.armed.Swap(false) {
			m.Wake()
		}
	}
}

func (m *memory) adopt(nc net.Conn, node int) (sock, error) {
	m.nodes[node] = &memoryNode{memory: m, index: node, nc: nc}
	return m.nodes[node], nil
}

func (m *memory) poll(time.Duration) (nodes quorum.Set) {
	for _, n := range m.nodes {
		if n != nil && len(n.in) > 0 && m.arrived.Load() {
			nodes.Add(n.index)
		}
	}
	return nodes
}

func (m *memory) Arm(bool) {
	m.armed.Store(true)
	if m.poll(0) != 0 {
		m.Wake()
	}
}

func (m *memory) Wake() { ring(m.wakes) }

func (m *memory) Wait() bool {
	<-m.wakes
	return !m.closed.Load()
}

func (m *memory) close() {
	m.closed.Store(true)
	ring(m.wakes)
	ring(m.sent)
}

func ring(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

type memoryNode struct {
	memory *memory
	index  int
	nc     net.Conn
	in     []byte
}

var granted = strings.Repeat("+OK\r\n", 4096)

// reply appends the replies to commands, of which calls stand first.
func reply(dst, commands []byte) []byte {
	for {
		_, rest, found := bytes.Cut(commands, []byte("$7\r\nEVALSHA\r\n$40\r\n"))
		if !found {
			break
		}
		commands = rest
		words := bytes.SplitN(rest, []byte("\r\n"), 4) // the digest, the length of the number, and the number
		dst = append(append(append(dst, ':'), words[2]...), "\r\n"...)
	}
	return append(dst, granted[:5*bytes.Count(commands, []byte("\nSET\r\n"))]...)
}

func (n *memoryNode) send(b []byte) (int, error) {
	m := n.memory
	if n.index == 0 || len(b) != len(m.text) || &b[0] != &m.text[0] {
		m.text, m.replies = b, reply(m.replies[:0], b)
	}
	n.in = append(n.in, m.replies...)
	if n.index == len(m.nodes)-1 {
		m.arrived.Store(false)
		ring(m.sent)
	}
	return len(b), nil
}

func (n *memoryNode) recv(b []byte) (int, error) {
	k := copy(b, n.in)
	n.in = n.in[:copy(n.in, n.in[k:])]
	return k, nil
}

func (n *memoryNode) close(bool) { _ = n.nc.Close() }
