package session

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Server serves connections. It is safe for concurrent use.
type Server struct {
	limits  Limits
	open    func(id int64, addr net.Addr, push Push) Commands
	budget  budget
	unknown strangers
	stats   Stats
	lastID  atomic.Int64
	running sync.WaitGroup // sessions, and undone replies
	gate    gate

	mu       sync.Mutex
	stopping bool
	listener net.Listener
	sessions map[*session]struct{}
}

// Stats counts the work of a server.
type Stats struct {
	Connections, Refused, Commands atomic.Uint64
	Open                           atomic.Int64 // connections at present
}

// New returns a server. open returns the commands of a new connection from an address.
func New(limits Limits, open func(id int64, addr net.Addr, push Push) Commands) *Server {
	limits = limits.withDefaults()
	s := &Server{limits: limits, open: open, sessions: map[*session]struct{}{}}
	s.budget.most = limits.Memory
	s.unknown.budget.most = limits.Memory / strangersPart
	s.gate.init()
	return s
}

// Stats returns the live counts.
func (s *Server) Stats() *Stats { return &s.stats }

// Serve accepts connections until Stop, and then returns nil. Any other result is the reason why it can accept no more.
func (s *Server) Serve(l net.Listener) error {
	s.mu.Lock()
	s.listener = l
	stopping := s.stopping
	s.mu.Unlock()
	if stopping {
		return l.Close()
	}
	ended := make(chan struct{})
	defer close(ended)
	go s.parkIdle(ended)
	for {
		conn, err := l.Accept()
		if err == nil {
			s.admit(conn)
			continue
		}
		s.mu.Lock()
		stopping := s.stopping
		s.mu.Unlock()
		if stopping {
			return nil
		}
		if late, ok := err.(interface{ Temporary() bool }); !ok || !late.Temporary() {
			return err
		}
		time.Sleep(acceptPause) // too many open files, for example
	}
}

const acceptPause = 10 * time.Millisecond

// admit begins a session, or refuses the connection. A TLS connection reads before it writes, so
// the refusal is bounded in both, and holds no lock.
func (s *Server) admit(conn net.Conn) {
	if s.begin(conn) {
		return
	}
	s.stats.Refused.Add(1)
	_ = conn.SetDeadline(time.Now().Add(acceptPause))
	_, _ = conn.Write([]byte("-ERR max number of clients reached\r\n"))
	_ = conn.Close()
}

// begin begins a session, and reports false if there are too many.
func (s *Server) begin(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		_ = conn.Close()
		return true
	}
	if len(s.sessions) >= s.limits.Clients {
		return false
	}
	s.stats.Connections.Add(1)
	s.stats.Open.Add(1)
	n := &session{server: s, conn: conn}
	n.commands = s.open(s.lastID.Add(1), conn.RemoteAddr(), n.pushMessage)
	n.ctx, n.cancel = context.WithCancel(context.Background())
	n.room.L = &n.mu
	n.in.session = n
	s.sessions[n] = struct{}{}
	n.isStranger.Store(n.commands.IsStranger())
	if n.isStranger.Load() {
		s.unknown.add(n, s.limits.Strangers)
	}
	n.in.begin(nil)
	serve := n.serve
	if c, isTLS := conn.(interface{ Handshake() error }); isTLS { // parked before its end, it would fail
		n.limitRead(time.Now().Add(s.limits.Read))
		serve = func() {
			_ = c.Handshake() // an error comes again
			n.serve()
		}
	}
	s.running.Go(serve)
	return true
}

func (s *Server) end(n *session) {
	s.mu.Lock()
	delete(s.sessions, n)
	s.mu.Unlock()
	s.unknown.remove(n)
	s.stats.Open.Add(-1)
}

// Stop accepts and reads no more, cancels waiting commands, answers those under way, and returns
// when all connections have ended and all is undone. When ctx ends it closes the connections.
func (s *Server) Stop(ctx context.Context) {
	s.mu.Lock()
	s.stopping = true
	if s.listener != nil {
		_ = s.listener.Close()
	}
	for n := range s.sessions { // a client that does not read would delay the others
		go n.stop() // a client that does not read would delay the others
	}
	s.mu.Unlock()
	cut := context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for n := range s.sessions {
			go n.cut()
		}
	})
	defer cut()
	s.running.Wait()
	s.gate.end()
}

// End ends the connections for which isOver is true, after the answers to their commands under way. isOver is called
// with a connection's commands while none of them is planned, and must not block.
func (s *Server) End(isOver func(Commands) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n := range s.sessions {
		if n.isOver(isOver) {
			go n.stop() // a client that does not read would delay the others
		}
	}
}

var buffers = sync.Pool{New: func() any { return new([]byte) }}

// maxWrite is the size at which one write takes no more replies.
const maxWrite = 64 << 10
