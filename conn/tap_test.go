package conn

import (
	"bytes"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// tap stands between a client and a server, writes down what the client says on
// the wire, and may meddle with what the server says.
type tap struct {
	to       string
	listener net.Listener
	// back, where set, carries what the server says to the client in place
	// of io.Copy, until either has ended.
	back func(client io.Writer, server io.Reader)

	mu      sync.Mutex
	heard   bytes.Buffer
	running sync.WaitGroup
}

func newTap(t *testing.T, to string, set ...func(*tap)) *tap {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &tap{to: to, listener: listener}
	p.back = func(client io.Writer, server io.Reader) { _, _ = io.Copy(client, server) }
	for _, f := range set {
		f(p)
	}
	p.running.Add(1)
	go func() {
		defer p.running.Done()
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			p.running.Add(1)
			go func() {
				defer p.running.Done()
				p.carry(client)
			}()
		}
	}()
	t.Cleanup(func() { _ = listener.Close() }) // both ends of what runs end before it
	return p
}

// carry goes on until either side has ended its connection.
func (p *tap) carry(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", p.to)
	if err != nil {
		return
	}
	defer server.Close()
	p.running.Add(1)
	go func() {
		defer p.running.Done()
		p.back(client, server)
		_ = client.Close()
	}()
	_, _ = io.Copy(io.MultiWriter(server, p), client)
}

// Write writes down what a client says.
func (p *tap) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.heard.Write(b)
}

// said is all that clients said so far.
func (p *tap) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.heard.String()
}

func (p *tap) addr() string { return p.listener.Addr().String() }
