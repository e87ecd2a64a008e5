package conn

import (
	"crypto/sha1"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/testkit"
	"github.com/redlock-go/redlock/resp"
)

// testScript is what every peer expects to be loaded.
var testScript = scriptOf("return 1")

func scriptOf(text string) Script {
	sum := sha1.Sum([]byte(text))
	return Script{Text: text, SHA1: hex.EncodeToString(sum[:])}
}

// peer is a server that does nothing but what its test says. It answers the
// handshake by itself and then hands the connection over.
type peer struct {
	network string
	tls     *tls.Config
	// answers replaces what the handshake's commands are answered, by name.
	answers map[string]string
	// greeting turns the honest answers to the n-th handshake, counted from
	// 0, into what is done in their place.
	greeting func(n int, honest string) steps
	// scripts is how many of them a handshake ends with, if not one.
	scripts int
	// serveRaw hands connections over before the handshake.
	serveRaw bool
	// serve, where set, takes over the connection after the handshake.
	serve func(nc net.Conn)

	addr    string
	runID   string
	dialled atomic.Int64
	greeted chan *wire

	mu       sync.Mutex
	listener net.Listener
	conns    []net.Conn
	running  sync.WaitGroup
}

var peers atomic.Int64

// newPeer starts a peer; set may change it before.
func newPeer(t *testing.T, set ...func(*peer)) *peer {
	t.Helper()
	p := &peer{network: "tcp", addr: "127.0.0.1:0", greeted: make(chan *wire, 4096)}
	p.runID = fmt.Sprintf("%040d", peers.Add(1))
	for _, f := range set {
		f(p)
	}
	p.start(t)
	t.Cleanup(func() {
		p.stop()
		p.running.Wait()
	})
	return p
}

func newPeers(t *testing.T, n int, set ...func(*peer)) []*peer {
	t.Helper()
	ps := make([]*peer, n)
	for i := range ps {
		ps[i] = newPeer(t, set...)
	}
	return ps
}

// start listens, on the same address as before.
func (p *peer) start(t *testing.T) {
	t.Helper()
	var listener net.Listener
	testkit.Await(t, "to listen on "+p.addr, func() bool {
		var err error
		listener, err = net.Listen(p.network, p.addr)
		return err == nil
	})
	p.addr = listener.Addr().String()
	p.mu.Lock()
	p.listener = listener
	p.mu.Unlock()
	p.running.Add(1)
	go p.accept(t, listener)
}

// stop is a process that dies: dials are refused, connections end.
func (p *peer) stop() {
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

// forget closes all connections but the last ones.
func (p *peer) forget(keep int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.conns) > keep {
		_ = p.conns[0].Close()
		p.conns = p.conns[1:]
	}
}

func (p *peer) accept(t *testing.T, listener net.Listener) {
	defer p.running.Done()
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
		n := p.dialled.Add(1) - 1
		p.conns = append(p.conns, nc)
		p.mu.Unlock()
		p.running.Add(1)
		go func() {
			defer p.running.Done()
			if p.tls != nil {
				nc = tls.Server(nc, p.tls)
			}
			p.greet(t, nc, int(n))
		}()
	}
}

func (p *peer) greet(t *testing.T, nc net.Conn, n int) {
	w := &wire{t: t, Conn: nc}
	if p.serveRaw {
		p.greeted <- w
		return
	}
	_ = nc.SetReadDeadline(time.Now().Add(testkit.Patience))
	honest, welcome, err := p.handshake(nc)
	if err != nil {
		return
	}
	if !welcome { // who is refused HELLO goes away and comes back
		w.play(steps{honest, mute})
		return
	}
	played := steps{honest}
	if p.greeting != nil {
		played = p.greeting(n, honest)
	}
	if !w.play(played) {
		return
	}
	if p.serve != nil {
		_ = nc.SetReadDeadline(time.Time{})
		p.serve(nc)
		return
	}
	p.greeted <- w
}

// handshake reads commands up to the last script, which is the end of them, and
// returns the answers, and whether HELLO was not refused. The client sends
// nothing behind it before it has them.
func (p *peer) handshake(nc net.Conn) (honest string, welcome bool, err error) {
	var in []byte
	var answers strings.Builder
	welcome = true
	scripts := max(1, p.scripts)
	buf := make([]byte, 4096)
	for {
		k, err := nc.Read(buf)
		if err != nil {
			return "", false, err
		}
		in = append(in, buf[:k]...)
		for {
			args, rest := cutCommand(in)
			if args == nil {
				break
			}
			in = rest
			answer := p.answer(args)
			answers.WriteString(answer)
			if args[0] == "HELLO" && strings.ContainsAny(answer[:1], "-!") {
				welcome = false
			}
			if args[0] == "SCRIPT" {
				scripts--
			}
			if scripts == 0 {
				if len(in) > 0 {
					return "", false, errors.New("bytes behind the handshake")
				}
				return answers.String(), welcome, nil
			}
		}
	}
}

// unknown is what servers answer to a command that they do not have.
const unknown = "-ERR unknown command\r\n"

// answer is that of a Redis 7.0, unless the test says otherwise: of the command
// with its first argument, or of the command.
func (p *peer) answer(args []string) string {
	if len(args) > 1 {
		if answer, ok := p.answers[args[0]+" "+args[1]]; ok {
			return answer
		}
	}
	if answer, ok := p.answers[args[0]]; ok {
		return answer
	}
	switch args[0] {
	case "HELLO":
		return welcomeOf("standalone", "master")
	case "DELIFEQ", "DELEX":
		return unknown
	case "SET":
		return "-ERR syntax error\r\n"
	case "INFO":
		return infoOf(map[string]string{
			"server":      "# Server\r\nredis_version:7.0.15\r\nrun_id:" + p.runID + "\r\ntcp_port:1\r\n",
			"replication": "# Replication\r\nrole:master\r\n",
			"memory":      "# Memory\r\nmaxmemory_policy:noeviction\r\n",
		}[args[1]])
	case "SCRIPT":
		return string(resp.AppendBulkString(nil, scriptOf(args[2]).SHA1))
	}
	return "+OK\r\n"
}

// welcomeOf is the answer to HELLO, with values of several types around those
// that are looked for.
func welcomeOf(mode, role string) string {
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

func infoOf(section string) string { return string(resp.AppendBulkString(nil, section)) }

// command is what the client writes for one.
func command(args ...string) []byte { return appendCommand(nil, args...) }

// cutCommand cuts a whole command off in, or returns nil.
func cutCommand(in []byte) (args []string, rest []byte) {
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

// text is the peer's address as a user would write it.
func (p *peer) text() string {
	switch {
	case p.network == "unix":
		return "unix://" + p.addr
	case p.tls != nil:
		return "rediss://" + p.addr
	}
	return p.addr
}

// next is the next connection that has said its greetings.
func (p *peer) next(t *testing.T) *wire {
	t.Helper()
	select {
	case w := <-p.greeted:
		return w
	case <-time.After(testkit.Patience):
		require.FailNow(t, "nobody has dialled")
		return nil
	}
}

// wire is the server's end of a connection.
type wire struct {
	t *testing.T
	net.Conn
}

// steps are what a server does, in order: strings are written, verbs done.
type steps []any

type verb string

const (
	hangUp verb = "hang up" // close in order
	cut    verb = "cut"     // close by reset
	half   verb = "half"    // close the way to the client only
	mute   verb = "mute"    // stay silent, and read nothing
	drip   verb = "drip"    // send a byte now and then, until the client has gone
)

// play does what a script says, and reports whether the connection goes on.
func (w *wire) play(s steps) bool {
	for _, step := range s {
		switch step := step.(type) {
		case string:
			_, _ = w.Write([]byte(step)) // the client may be gone, rightly
		case verb:
			switch step {
			case hangUp:
				_ = w.Close()
				return false
			case cut:
				w.cut()
				return false
			case half:
				w.half()
			case mute:
				return false
			case drip:
				for {
					if _, err := w.Write([]byte("x")); err != nil {
						return false
					}
					time.Sleep(time.Millisecond) // it is what it says
				}
			}
		default:
			panic(fmt.Sprintf("no such step: %v", step))
		}
	}
	return true
}

func (w *wire) cut() {
	setReset(w.Conn)
	_ = transport(w.Conn).Close()
}

func (w *wire) half() {
	_ = w.Conn.(interface{ CloseWrite() error }).CloseWrite()
}

func (w *wire) send(s string) {
	w.t.Helper()
	_, err := w.Write([]byte(s))
	require.NoError(w.t, err)
}

// expect reads exactly want.
func (w *wire) expect(want string) {
	w.t.Helper()
	require.NoError(w.t, w.SetReadDeadline(time.Now().Add(testkit.Patience)))
	got := make([]byte, len(want))
	for n := 0; n < len(got); {
		k, err := w.Read(got[n:])
		require.NoError(w.t, err, "after %d of %d bytes", n, len(want))
		n += k
	}
	if string(got) != want { // not Equal: megabytes of difference help nobody
		require.FailNow(w.t, "other bytes than those sent")
	}
}

// rest reads to the end and returns what came and what ended it; nil is a
// proper close.
func (w *wire) rest() (n int, err error) {
	w.t.Helper()
	require.NoError(w.t, w.SetReadDeadline(time.Now().Add(testkit.Patience)))
	buf := make([]byte, 64<<10)
	for {
		k, err := w.Read(buf)
		n += k
		if err != nil {
			if errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
				return n, syscall.ECONNRESET
			}
			if err.Error() == "EOF" {
				err = nil
			}
			return n, err
		}
	}
}
