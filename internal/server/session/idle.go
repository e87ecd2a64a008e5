package session

import (
	"errors"
	"runtime/debug"
	"time"
)

// A connection that is idle is parked: its goroutine, with the stack that commands have made grow,
// its buffer and its maps are given up, and a fresh goroutine waits for the first byte of the next
// command. So what thousands of idle connections cost does not depend on what they have done.

// idleness is how long a session has done nothing, and what it is parked with. Session.mu guards it.
type idleness struct {
	arrived   uint64 // commands that have arrived, and as many at the last look
	seen      uint64
	isParking bool // the deadline of reads has passed for this reason
	isParked  bool
	first     [1]byte // of the next command
}

// parkEvery is how often connections are looked at: one that does nothing between two looks is idle.
const parkEvery = time.Second

// errIdle ends the reading of a session that is parked.
var errIdle = errors.New("session: idle")

// parkIdle parks connections until the server stops.
func (s *Server) parkIdle(ended <-chan struct{}) {
	tick := time.NewTicker(parkEvery)
	defer tick.Stop()
	parked, freed := 0, time.Time{} // since that
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

// After this many connections were parked the memory that they have given up is returned to the
// system, at most so often: it takes some 30 ms of processor time.
const (
	freeFrom  = 1000
	freeEvery = 10 * time.Second
)

// suggestPark has the goroutine that reads park the session, and reports true, if that is idle.
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

// mayPark reports whether the deadline of reads has passed so that the session is parked, and removes it.
func (s *session) mayPark() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := &s.idle
	if !i.isParking || s.closing || s.in.len() > 0 {
		return false
	}
	if i.isParking, i.isParked = false, true; s.open == 0 { // else a command has arrived since the look
		s.tails = nil
		s.own = own{}
	}
	_ = s.conn.SetReadDeadline(time.Time{})
	return true
}

// park waits for the first byte of the next command, and has it read by a goroutine that ends when
// the session is idle again.
func (s *session) park() {
	n, _ := s.conn.Read(s.idle.first[:]) // an error comes again
	s.mu.Lock()
	s.idle.isParked = false
	s.mu.Unlock()
	s.in.begin(s.idle.first[:n])
	s.server.running.Go(s.serve)
}
