package session

import (
	"errors"
	"net"
	"time"
)

// A client that sends one command at a time has it run by the goroutine that reads its connection: to
// hand it to another one costs as much as all else that a session does. Nothing is read meanwhile, so
// what a reader has to notice is noticed otherwise:
//
//   - that a command takes long: after ownTime another goroutine reads (lend);
//   - that the client has gone: before the reply to a grant is written (watchEnd).
//
// A connection on which commands arrive before the replies to those before them is read all the time.

// own is the command that the reader runs itself. Session.mu guards it, but taken, which is the reader's.
type own struct {
	request  *request    // that runs
	taken    *request    // that is to run
	mayTake  bool        // the command that is planned
	busy     int         // so many commands more are left to other goroutines
	readers  int         // goroutines that have read, one after another
	late     *time.Timer // lends
	hasEnded func() bool // the client has closed the connection; nil: that cannot be told
}

const (
	ownTime = 50 * time.Millisecond
	// stayBusy is for how many commands a connection that had several under way is taken for one that will.
	stayBusy = 16
)

// errLent ends the reading of a goroutine in whose place another reads.
var errLent = errors.New("session: another goroutine reads")

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

// forget gives up what a connection without a command does not need. A goroutine in whose place another
// reads still has to see that.
func (o *own) forget() { *o = own{readers: o.readers} }

// take reports whether the reader is to run a command, and notes that.
func (o *own) take(r *request) bool {
	if !o.mayTake || r.plan.Alone {
		return false
	}
	o.taken, r.isOwn = r, true
	return true
}

// runOwn runs the command of the reader.
func (s *session) runOwn() error {
	o := &s.own
	r := o.taken
	s.mu.Lock()
	o.request, o.taken = r, nil
	readers := o.readers
	if o.late == nil {
		o.late = time.AfterFunc(ownTime, s.lend)
	} else {
		o.late.Reset(ownTime)
	}
	s.mu.Unlock()
	s.run(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.readers != readers {
		return errLent
	}
	return nil
}

// lend has another goroutine read while this one runs its command.
func (s *session) lend() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := &s.own; o.request != nil {
		o.request = nil
		o.readers++
		s.server.running.Go(s.serve)
	}
}

// completeOwn notes that the command of a reader is complete. A grant is undone if its client has gone:
// another goroutine that reads by now may not have noticed yet.
func (s *session) completeOwn(r *request, isGrant bool) {
	o := &s.own
	if o.request == r {
		o.request = nil
		o.late.Stop()
	}
	if isGrant && o.hasEnded() {
		s.vanish()
	}
}

// watchEnd returns a function that reports whether the client has closed a connection, without a read
// of what it has sent. It is nil where that cannot be told: a TLS connection has bytes of its own.
func watchEnd(conn net.Conn) func() bool {
	if c, ok := conn.(interface{ HasEnded() bool }); ok { // one of a test
		return c.HasEnded
	}
	return peekEnd(conn)
}
