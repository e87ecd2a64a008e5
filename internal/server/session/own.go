package session

import "net"

// A client with one command at a time has it run by the goroutine that reads its connection: to hand it to another one
// costs as much as everything else in a session. Nothing is read meanwhile, so the end of the client must be noticed
// otherwise: before the reply to a grant is written (watchEnd).
//
// A connection is read all the time if its commands arrive before the replies to earlier ones.

// own is the command run by the reader itself. Session.mu guards it, but taken: this is the
// reader's.
type own struct {
	taken    *request    // to be run
	mayTake  bool        // the command being planned
	busy     int         // so many more commands are left to other goroutines
	hasEnded func() bool // the client has closed the connection; nil: unknown
}

// stayBusy is the number of commands for which a connection stays busy after it had several under way.
const stayBusy = 16

// consider decides whether the reader may run the arrived command. isLast: no more has arrived.
func (s *session) consider(isLast bool) {
	o := &s.own
	switch {
	case !isLast || s.open > 0:
		o.busy = stayBusy
	case o.busy > 0:
		o.busy--
	}
	if o.busy == 0 && o.hasEnded == nil {
		o.hasEnded = watchEnd(s.conn)
	}
	o.mayTake = o.busy == 0 && o.hasEnded != nil
}

// take reports whether the reader is to run a command, and notes it.
func (o *own) take(r *request) bool {
	if !o.mayTake || r.plan.Alone {
		return false
	}
	o.taken, r.isOwn = r, true
	return true
}

// watchEnd returns a function to report whether the client has closed a connection, without reading its bytes. It is
// nil if that is unknown: a TLS connection has bytes of its own.
func watchEnd(conn net.Conn) func() bool {
	if c, ok := conn.(interface{ HasEnded() bool }); ok { // one of a test
		return c.HasEnded
	}
	return peekEnd(conn)
}
