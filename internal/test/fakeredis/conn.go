package fakeredis

import (
	"crypto/tls"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"github.com/tidwall/redcon"

	"github.com/redlock-go/redlock/internal/rules/fencing"
)

// ending is how a connection ends after the bytes written last, if it does.
type ending uint8

const (
	endNot   ending = iota // it goes on
	endClose               // closed in order
	endReset               // cut off with a RST
)

// conn is one connection. Its goroutine reads all available bytes, runs all complete commands as
// one batch, and writes their replies at once.
type conn struct {
	srv  *Server
	nc   net.Conn
	id   int64
	done chan struct{} // closed when the connection has ended
	once sync.Once

	session
	in      []byte // read, but not run yet
	out     []byte // answered, but not written yet
	args    [][]byte
	held    []bool // scratch of the scripts
	answers []fencing.Answer
	how     ending        // the end after the bytes of out
	now     int64         // the time of this batch, in Unix milliseconds
	arrived time.Time     // when the last bytes came
	delay   time.Duration // how long replies to them take
	outbox  outbox

	// Guarded by srv.mu.
	ready   bool // it may be kicked
	pushes  []byte
	tracked map[string]struct{} // the keys of its registrations
}

// readSize is how much room a read gets at least.
const readSize = 32 << 10

// admit takes in a new connection from a listener, unless the server has stopped listening there
// since.
func (s *Server) admit(ln net.Listener, nc net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener != ln {
		_ = nc.Close()
		return
	}
	if s.faults.rejection != "" {
		if s.opts.TLS == nil { // under TLS a real server just hangs up, too
			_, _ = nc.Write([]byte(s.faults.rejection))
		}
		_ = nc.Close()
		return
	}
	if s.opts.TLS != nil {
		nc = tls.Server(nc, s.opts.TLS)
	}
	s.lastID++
	c := &conn{srv: s, nc: nc, id: s.lastID, done: make(chan struct{}), in: make([]byte, 0, readSize)}
	c.session.reset(&s.opts)
	s.conns[c] = struct{}{}
	s.running.Add(1)
	go func() {
		defer s.running.Done()
		defer c.leave()
		c.serve()
	}()
}

// leave is the last act of a connection.
func (c *conn) leave() {
	c.end(endClose)
	c.srv.mu.Lock()
	delete(c.srv.conns, c)
	c.forgetKeys()
	c.srv.mu.Unlock()
}

// end ends the connection at any moment.
func (c *conn) end(how ending) {
	c.once.Do(func() {
		if how == endReset {
			cut(c.nc)
		}
		close(c.done)
		// Not through TLS: its Close waits for the alert to be written.
		_ = rawConn(c.nc).Close()
	})
}

// kick makes the connection look at the faults of its server again. The caller
// holds srv.mu. A TLS handshake must not be kicked: it would not recover.
func (c *conn) kick() {
	if c.ready {
		_ = c.nc.SetReadDeadline(time.Unix(1, 0))
	}
}

func (c *conn) serve() {
	if !c.handshake() {
		return
	}
	for {
		if !c.await(c.srv.unread()) || !c.fill() {
			return
		}
		if c.run() && (!c.write() || c.how != endNot) {
			return
		}
	}
}

// handshake prepares a TLS connection. A frozen server does not even do this.
func (c *conn) handshake() bool {
	if t, ok := c.nc.(*tls.Conn); ok {
		if !c.await(c.srv.frozen()) || t.Handshake() != nil {
			return false
		}
	}
	c.srv.mu.Lock()
	defer c.srv.mu.Unlock()
	c.ready = true
	return true
}

// await waits for a channel to be closed, unless it is nil, and reports whether
// the connection goes on.
func (c *conn) await(thawed <-chan struct{}) bool {
	if thawed == nil {
		return true
	}
	select {
	case <-thawed:
		return true
	case <-c.done:
		return false
	}
}

// fill reads the arrived bytes, and reports whether the connection goes on.
func (c *conn) fill() bool {
	if cap(c.in)-len(c.in) < readSize/2 {
		c.in = append(make([]byte, 0, 2*cap(c.in)), c.in...)
	}
	n, err := c.nc.Read(c.in[len(c.in):cap(c.in)])
	c.in = c.in[:len(c.in)+n]
	if n > 0 {
		c.arrived = time.Now()
		return true
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return c.nc.SetReadDeadline(time.Time{}) == nil
	}
	return err == nil
}

// run runs the complete commands among the bytes read, and reports whether the replies may leave.
// The commands of a frozen server, and the replies of a mute one, stay until the next call.
func (c *conn) run() bool {
	s := c.srv
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(c.pushes) > 0 && s.faults.thawed == nil {
		c.arrived = time.Now() // for the delay of the line
		c.writePushes()
	}
	rest := c.in
	c.now = s.now()
	for c.how == endNot && len(rest) > 0 && s.faults.thawed == nil {
		complete, args, left, err := next(rest, c.args)
		if err != nil {
			c.fail("ERR " + err.Error())
			c.how = endClose
			break
		}
		if !complete {
			break
		}
		c.args, rest = args, left
		if len(args) == 0 {
			continue
		}
		if s.hook != nil {
			s.callHook(c, args)
		}
		c.how = c.execute(args)
	}
	c.delay = s.faults.delay
	c.in = c.in[:copy(c.in, rest)]
	return !s.faults.mute
}

// callHook lets a test see a command before it runs, with no lock held.
func (s *Server) callHook(c *conn, args [][]byte) {
	hook := s.hook
	texts := make([]string, len(args))
	for i, arg := range args {
		texts[i] = string(arg)
	}
	s.mu.Unlock()
	hook(c.id, texts)
	s.mu.Lock()
}

// next cuts the next command off the bytes read. The parser trusts lengths and panics on hostile
// ones; this must not end a test.
func next(b []byte, args [][]byte) (complete bool, _ [][]byte, left []byte, err error) {
	defer func() {
		if recover() != nil {
			//lint:ignore ST1005 it is the server's own text
			err = errors.New("Protocol error: invalid bulk length")
		}
	}()
	complete, args, _, left, err = redcon.ReadNextCommand(b, args)
	return complete, args, left, err
}

// write hands the replies to the socket, or to the outbox of a slow server.
func (c *conn) write() bool {
	if c.delay > 0 || c.outbox.busy() {
		c.outbox.put(c, parcel{due: c.arrived.Add(c.delay), data: c.out, how: c.how})
		c.out = nil
		if c.how != endNot {
			<-c.done
		}
		return true
	}
	if !c.send(c.out, c.how) {
		return false
	}
	if cap(c.out) > maxKeptOutput {
		c.out = nil
	}
	c.out = c.out[:0]
	return true
}

// send writes bytes, and then ends the connection if told to.
func (c *conn) send(b []byte, how ending) bool {
	if len(b) > 0 {
		if _, err := c.nc.Write(b); err != nil {
			return false
		}
	}
	if how != endNot {
		c.end(how)
	}
	return true
}

// maxKeptOutput bounds the reply buffer kept by a connection.
const maxKeptOutput = 256 << 10

// cut makes the next Close of a connection send a RST.
func cut(nc net.Conn) {
	if t, ok := rawConn(nc).(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
}

// rawConn is the socket under a connection.
func rawConn(nc net.Conn) net.Conn {
	if t, ok := nc.(*tls.Conn); ok {
		return t.NetConn()
	}
	return nc
}
