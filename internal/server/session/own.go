package session

import "net"

// A client that sends one command at a time has it run by the goroutine that reads its connection: to
// hand it to another one costs as much as all else that a session does. Nothing is read meanwhile, so
// that the client has gone is noticed otherwise: before the reply to a grant is written (watchEnd).
//
// A connection on which commands arrive before the replies to those before them is read all the time.

// own is the command that the reader runs itself. Session.mu guards it, but taken, which is the reader's.
type own struct {
	taken    *request    // that is to run
	mayTake  bool        // the command that is planned
	busy     int         // so many commands more are left to other goroutines
	hasEnded func() bool // the client has closed the connection; nil: that cannot be told
}

// stayBusy is for how many commands a connection that had several under way is taken for one that will.
const stayBusy = 16

// consider decides whether the reader may run the command that has arrived. isLast: no more has arrived.
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

// take reports whether the reader is to run a command, and notes that.
func (o *own) take(r *request) bool {
	if !o.mayTake || r.plan.Alone {
		return false
	}
	o.taken, r.isOwn = r, true
	return true
}

// watchEnd returns a function that reports whether the client has closed a connection, without a read
// of what it has sent. It is nil where that cannot be told: a TLS connection has bytes of its own.
func watchEnd(conn net.Conn) func() bool {
	if c, ok := conn.(interface{ HasEnded() bool }); ok { // one of a test
		return c.HasEnded
	}
	return peekEnd(conn)
}
