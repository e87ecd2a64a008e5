package fakeredis

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/redlock-go/redlock/internal/base/errno"
	"github.com/redlock-go/redlock/internal/test/port"
)

// Server is one fake master. All its methods may be called at any time and from any goroutine,
// hooks included.
type Server struct {
	opts    Options
	dialect *dialect
	addr    string    // as it was resolved: Heal listens here again
	port    port.Port // where none was asked for
	running sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	listener net.Listener // nil while refused
	conns    map[*conn]struct{}
	lastID   int64
	runID    string
	history  string // master_replid
	before   string // master_replid2
	started  time.Time
	keys     table
	scripts  [scripts]bool // the loaded ones
	calls    []int64       // per command, by its index
	denied   map[string]bool
	prefix   string // of the only keys allowed
	full     bool   // see Fill
	replica  bool
	ahead    time.Duration // of Options.Now
	hook     func(conn int64, args []string)
	writes   func(key, value string)
	faults   faults
	tracking tracking
}

// Start starts a server. It serves until Close.
func Start(opts Options) (*Server, error) {
	s := &Server{
		opts:  opts.withDefaults(),
		conns: make(map[*conn]struct{}),
		runID: newRunID(), history: newRunID(),
		calls:  make([]int64, len(commands)),
		denied: make(map[string]bool),
	}
	s.dialect = &dialects[s.opts.Flavor]
	s.addr = s.opts.Addr
	s.started = s.opts.Now()
	s.tracking.keys, s.tracking.ended = make(map[string][]*conn), make(chan struct{})
	s.keys = newTable(s)
	s.Deny(opts.Deny...)
	ln, err := s.listenFirst()
	if err != nil {
		return nil, err
	}
	s.addr = ln.Addr().String()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serve(ln)
	return s, nil
}

// listenFirst listens at the address that was asked for, or at a port that is kept until Close.
func (s *Server) listenFirst() (ln net.Listener, err error) {
	if s.addr != "" {
		return s.opts.Listen("tcp", s.addr)
	}
	s.port, err = port.New(func(addr string) (err error) {
		ln, err = s.opts.Listen("tcp", addr)
		return err
	})
	return ln, err
}

// Addr is the address for clients: host:port, or the path of the socket.
func (s *Server) Addr() string { return s.addr }

// Close ends the server and all its connections, and waits for its last goroutine.
func (s *Server) Close() error {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.tracking.ended)
	}
	s.stopListening()
	s.hangUp(endClose)
	err := s.port.Close()
	s.mu.Unlock()
	s.running.Wait()
	return err
}

// Restart acts as the restart of a process: every connection ends, the run id is a new one, loaded
// scripts and standing faults of a frozen process are gone, and so are the keys if it comes up
// empty. It listens on the same port again, also after Down. Delay and injected faults stay.
func (s *Server) Restart(empty bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hangUp(endClose)
	s.runID, s.history, s.before = newRunID(), newRunID(), ""
	s.started = s.opts.Now()
	s.scripts = [scripts]bool{}
	if empty {
		s.flush()
	}
	s.thaw()
	return s.listenAgain()
}

// serve accepts connections from a listener. The caller holds s.mu.
func (s *Server) serve(ln net.Listener) {
	s.listener = ln
	s.running.Add(1)
	go func() {
		defer s.running.Done()
		for {
			nc, err := ln.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil {
				s.admit(ln, nc)
			}
		}
	}()
}

// stopListening has the dials of clients refused. The caller holds s.mu.
func (s *Server) stopListening() {
	if s.listener != nil {
		_ = s.listener.Close()
		s.listener = nil
	}
}

// listenAgain undoes stopListening. Where an address was asked for, an outgoing connection may have got the port in
// between, hence the patience. The caller holds s.mu.
func (s *Server) listenAgain() error {
	if s.closed {
		return net.ErrClosed
	}
	if s.listener != nil {
		return nil
	}
	deadline := time.Now().Add(5 * time.Second)
	for {
		ln, err := s.opts.Listen("tcp", s.addr)
		if err == nil {
			s.serve(ln)
			return nil
		}
		if !errors.Is(err, errno.AddrInUse) || time.Now().After(deadline) {
			return err
		}
		time.Sleep(time.Millisecond)
	}
}

// hangUp ends every connection. The caller holds s.mu.
func (s *Server) hangUp(how ending) {
	for c := range s.conns {
		c.end(how)
	}
}

// flush removes every key. The caller holds s.mu.
func (s *Server) flush() {
	s.keys.clear()
	s.flushed()
}

// clock is the time of TIME and of expiring keys.
func (s *Server) clock() time.Time { return s.opts.Now().Add(s.ahead) }

// now is the clock in Unix milliseconds.
func (s *Server) now() int64 { return s.clock().UnixMilli() }

// newRunID makes 40 hexadecimal digits, as Redis does.
func newRunID() string {
	var b [20]byte
	_, _ = rand.Read(b[:]) // never fails: the process would have ended
	return hex.EncodeToString(b[:])
}
