package session

import (
	"errors"
	"runtime/debug"
	"time"
)

// An idle connection is parked: its goroutine, with the stack grown by commands, its buffer and its
// maps are given up, and a fresh goroutine waits for the first byte of the next command. So the
// cost of thousands of idle connections does not depend on their past.

// idleness is how long a session has been idle, and the state of a parked one. Session.mu guards
// it.
type idleness struct {
	arrived   uint64 // number of commands, and as of the last look
	seen      uint64
	isParking bool // the read deadline has passed for this reason
	isParked  bool
	first     [1]byte // of the next command
}

// parkEvery is the interval of looks at connections: a connection without a command between two
// looks is idle.
const parkEvery = time.Second

// errIdle ends the reading of a parked session.
var errIdle = errors.New("session: idle")

// parkIdle parks connections until the server stops.
func (s *Server) parkIdle(ended <-chan struct{}) {
	tick := time.NewTicker(parkEvery)
	defer tick.Stop()
	parked, freed := 0, time.Time{} // since freed
	for {
		select {
		case <-ended:
			return
		case <-tick.C:
		}
		if parked >= freeFrom && time.Since(freed) > freeEvery {
			debug.FreeOSMemory()
			parked, freed = 0, time.Now()
		}
		s.mu.Lock()
		for n := range s.sessions {
			if n.suggestPark() {
				parked++
			}
		}
		s.mu.Unlock()
	}
}

// After so many parked connections their memory is returned to the system, at most so often: it
// takes some 30 ms of processor time.
const (
	freeFrom  = 1000
	freeEvery = 10 * time.Second
)

// suggestPark has the reading goroutine park an idle session, and reports whether the session is
// idle.
func (s *session) suggestPark() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := &s.idle
	isIdle := i.arrived == i.seen && s.first == nil && !s.isTimed && !s.closing && !s.gone
	i.seen = i.arrived
	if !isIdle || i.isParked {
		return false
	}
	i.isParking = true
	_ = s.conn.SetReadDeadline(time.Unix(1, 0))
	return true
}

// mayPark reports whether the read deadline has passed for parking, and removes it.
func (s *session) mayPark() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := &s.idle
	if !i.isParking || s.closing || len(s.in.buf) > 0 {
		return false
	}
	i.isParking, i.isParked = false, true
	if s.open == 0 { // else a command has arrived since the look
		s.tails = nil
		s.own = own{}
	}
	_ = s.conn.SetReadDeadline(time.Time{})
	return true
}

// park waits for the first byte of the next command, and makes a goroutine read it. This goroutine ends when the
// session is idle again.
func (s *session) park() {
	n, _ := s.conn.Read(s.idle.first[:]) // an error comes again
	s.mu.Lock()
	s.idle.isParked = false
	s.mu.Unlock()
	s.in.begin(s.idle.first[:n])
	s.server.running.Go(s.serve)
}
