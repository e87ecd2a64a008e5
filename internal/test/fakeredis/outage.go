package fakeredis

import "time"

// Delay makes every reply leave d after its command arrived, however many are
// under way: it is the length of the line, not the speed of the server. Sleeps
// end on whole milliseconds or so where the process has nothing else to do.
func (s *Server) Delay(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults.delay = d
}

// Hang freezes the server like a stopped process: connections are accepted and bytes are read, but
// no command is run, until Heal runs all of them.
func (s *Server) Hang() { s.freeze(false) }

// HangUnread is Hang without reading either: a client that goes on writing finds its socket full.
func (s *Server) HangUnread() { s.freeze(true) }

func (s *Server) freeze(unread bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.faults.thawed == nil {
		s.faults.thawed = make(chan struct{})
	}
	s.faults.unread = unread
	s.kickAll()
}

// Mute runs every command, but keeps the replies until Heal, as when only the way back from the
// server is broken.
func (s *Server) Mute() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults.mute = true
}

// Demote makes a replica of the server, in its own words: it would take a write all the same.
func (s *Server) Demote() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replica = true
}

// Fill makes the server full, or not: it refuses what adds to its data, by a script unless this has written before.
func (s *Server) Fill(full bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.full = full
}

// Promote makes a master of the server again, which has loaded the data of an empty one. No connection ends.
func (s *Server) Promote() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replica = false
	s.before, s.history = newRunID(), newRunID()
	s.flush()
}

// Down is a dead process: dials are refused and every connection ends. Heal brings it back with the
// same run id and keys, Restart with a new one.
func (s *Server) Down() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopListening()
	s.hangUp(endClose)
}

// RejectConns sends each new connection an error before any command, and then
// closes it: "DENIED …", or "ERR max number of clients reached".
func (s *Server) RejectConns(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults.rejection = "-" + text + "\r\n"
}

// CloseConns closes every connection in order, as a server does with idle ones.
func (s *Server) CloseConns() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hangUp(endClose)
}

// ResetConns cuts every connection off with a RST.
func (s *Server) ResetConns() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hangUp(endReset)
}

// Heal ends every fault: commands held back are run, replies held back are written, and the server
// listens on its address again. Commands forbidden by Deny stay so.
func (s *Server) Heal() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults.delay = 0
	s.faults.rejection = ""
	s.faults.rules = nil
	s.faults.pushes = PushFault{}
	s.thaw()
	return s.listenAgain()
}

// thaw ends Hang and Mute. The caller holds s.mu.
func (s *Server) thaw() {
	s.faults.unread, s.faults.mute = false, false
	if s.faults.thawed != nil {
		close(s.faults.thawed)
		s.faults.thawed = nil
	}
	s.kickAll()
}

// kickAll makes every connection look at the faults. The caller holds s.mu.
func (s *Server) kickAll() {
	for c := range s.conns {
		c.kick()
	}
}

// frozen returns the channel that ends Hang, or nil if there is nothing to end.
func (s *Server) frozen() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.faults.thawed
}

// unread is frozen, but for HangUnread only.
func (s *Server) unread() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.faults.unread {
		return nil
	}
	return s.faults.thawed
}
