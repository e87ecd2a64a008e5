// Package scripted is a server that follows the script of a test.
package scripted

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/test/port"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/resp"
)

// Server follows the script of a test. It answers the handshake by itself and then hands the
// connection over.
type Server struct {
	TLS *tls.Config
	// Answers replaces answers to the handshake's commands, by name.
	Answers map[string]string
	// Greeting turns the honest answers to the n-th handshake, counted from 0, into the steps in
	// their place.
	Greeting func(n int, honest string) Steps
	// ServeRaw hands connections over before the handshake.
	ServeRaw bool
	// Serve, where set, takes over the connection after the handshake.
	Serve func(nc net.Conn)

	Addr    string
	RunID   string
	Dialled atomic.Int64
	Greeted chan *Conn

	mu       sync.Mutex
	listener net.Listener
	conns    []net.Conn
	port     port.Port
	Running  sync.WaitGroup
}

var servers atomic.Int64 // for run_ids

// New starts a server; set may change it before.
func New(t *testing.T, set ...func(*Server)) *Server {
	t.Helper()
	p := &Server{RunID: NewRunID(), Greeted: make(chan *Conn, 4096)}
	for _, f := range set {
		f(p)
	}
	t.Cleanup(p.Close)
	var err error
	p.port, err = port.New(func(addr string) error {
		listener, err := net.Listen("tcp", addr)
		if err == nil {
			p.accept(t, listener)
		}
		return err
	})
	require.NoError(t, err)
	return p
}

// NewN starts n of them.
func NewN(t *testing.T, n int, set ...func(*Server)) []*Server {
	t.Helper()
	ps := make([]*Server, n)
	for i := range ps {
		ps[i] = New(t, set...)
	}
	return ps
}

// Start listens, on the same address as before.
func (p *Server) Start(t *testing.T) {
	t.Helper()
	var listener net.Listener
	testkit.Await(t, "to listen on "+p.Addr, func() bool {
		var err error
		listener, err = net.Listen("tcp", p.Addr)
		return err == nil
	})
	p.accept(t, listener)
}

// Close ends the server. Others may have its port then.
func (p *Server) Close() {
	p.Stop()
	p.Running.Wait()
	_ = p.port.Close()
}

// Stop is a dying process: dials are refused, connections end.
func (p *Server) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil {
		_ = p.listener.Close()
		p.listener = nil
	}
	for _, nc := range p.conns {
		_ = nc.Close()
	}
	p.conns = nil
}

// Forget closes all connections but the last ones.
func (p *Server) Forget(keep int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.conns) > keep {
		_ = p.conns[0].Close()
		p.conns = p.conns[1:]
	}
}

func (p *Server) accept(t *testing.T, listener net.Listener) {
	p.Addr = listener.Addr().String()
	p.mu.Lock()
	p.listener = listener
	p.mu.Unlock()
	p.Running.Go(func() { p.acceptAll(t, listener) })
}

func (p *Server) acceptAll(t *testing.T, listener net.Listener) {
	for {
		nc, err := listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		if p.listener != listener { // stopped meanwhile
			p.mu.Unlock()
			_ = nc.Close()
			return
		}
		n := p.Dialled.Add(1) - 1
		p.conns = append(p.conns, nc)
		p.mu.Unlock()
		p.Running.Add(1)
		go func() {
			defer p.Running.Done()
			if p.TLS != nil {
				nc = tls.Server(nc, p.TLS)
			}
			p.greet(t, nc, int(n))
		}()
	}
}

func (p *Server) greet(t *testing.T, nc net.Conn, n int) {
	w := &Conn{nc, t}
	if p.ServeRaw {
		p.Greeted <- w
		return
	}
	_ = nc.SetReadDeadline(time.Now().Add(testkit.Patience))
	honest, err := p.handshake(nc)
	if err != nil {
		return
	}
	played := Steps{honest}
	if p.Greeting != nil {
		played = p.Greeting(n, honest)
	}
	if !w.Play(played) {
		return
	}
	if p.Serve != nil {
		_ = nc.SetReadDeadline(time.Time{})
		p.Serve(nc)
		return
	}
	p.Greeted <- w
}

// handshake reads commands up to the script, the end of the handshake. It returns the answers. The client sends
// nothing more before it has them.
func (p *Server) handshake(nc net.Conn) (honest string, err error) {
	var in []byte
	var answers strings.Builder
	buf := make([]byte, 4096)
	for {
		k, err := nc.Read(buf)
		if err != nil {
			return "", err
		}
		in = append(in, buf[:k]...)
		for {
			args, rest := CutCommand(in)
			if args == nil {
				break
			}
			in = rest
			answers.WriteString(p.answer(args))
			if args[0] == "EVAL" {
				if len(in) > 0 {
					return "", errors.New("bytes behind the handshake")
				}
				return answers.String(), nil
			}
		}
	}
}

// Unknown holds the servers' answer to an unknown command.
const Unknown = "-ERR unknown command\r\n"

// answer is that of a Redis 7.0, unless the test replaces it: of the command with its first
// argument, or of the command.
func (p *Server) answer(args []string) string {
	if len(args) > 1 {
		if answer, ok := p.Answers[args[0]+" "+args[1]]; ok {
			return answer
		}
	}
	if answer, ok := p.Answers[args[0]]; ok {
		return answer
	}
	switch args[0] {
	case "HELLO":
		return WelcomeOf("standalone", "master")
	case "DELIFEQ", "DELEX":
		return Unknown
	case "INFO":
		return InfoOf(map[string]string{
			"server":      "# Server\r\nredis_version:7.0.15\r\nrun_id:" + p.RunID + "\r\ntcp_port:1\r\n",
			"replication": "# Replication\r\nrole:master\r\n",
			"memory":      "# Memory\r\nmaxmemory_policy:noeviction\r\n",
		}[args[1]])
	case "EVAL", "EVALSHA":
		return "*1\r\n:0\r\n"
	}
	return "+OK\r\n"
}

// WelcomeOf is the answer to HELLO, with values of several types around the values of interest.
func WelcomeOf(mode, role string) string {
	b := []byte("%6\r\n")
	b = resp.AppendBulkString(resp.AppendBulkString(b, "modules"), "")
	b = resp.AppendBulkString(b, "args")
	b = resp.AppendBulkString(resp.AppendBulkString(resp.AppendArray(b, 2), "role"), "replica")
	b = resp.AppendBulkString(resp.AppendBulkString(b, "server"), "redis")
	b = resp.AppendBulkString(resp.AppendBulkString(b, "version"), "7.0.15")
	b = resp.AppendBulkString(resp.AppendBulkString(b, "mode"), mode)
	b = resp.AppendBulkString(resp.AppendBulkString(b, "role"), role)
	return string(b)
}

// InfoOf is the answer to INFO.
func InfoOf(section string) string { return string(resp.AppendBulkString(nil, section)) }

// CutCommand cuts a whole command off in, or returns nil.
func CutCommand(in []byte) (args []string, rest []byte) {
	var d resp.Decoder
	var v resp.Value
	n, err := d.Decode(in, &v)
	if err != nil {
		return nil, in
	}
	it := v.Elements()
	for it.Next() {
		args = append(args, string(it.Value().Bytes))
	}
	return args, in[n:]
}

// URL is the peer's address as a user would write it.
func (p *Server) URL() string {
	if p.TLS != nil {
		return "rediss://" + p.Addr
	}
	return p.Addr
}

// Next is the next connection after a complete handshake.
func (p *Server) Next(t *testing.T) *Conn {
	t.Helper()
	select {
	case w := <-p.Greeted:
		return w
	case <-time.After(testkit.Patience):
		require.FailNow(t, "the client has not dialled")
		return nil
	}
}

// NewRunID is the id of another process.
func NewRunID() string { return fmt.Sprintf("%040d", servers.Add(1)) }
