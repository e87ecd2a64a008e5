package session

import (
	"bytes"
	"cmp"
	"context"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/resp"
)

// session is one connection.
type session struct {
	server   *Server
	conn     net.Conn
	commands Commands
	ctx      context.Context // of its commands
	cancel   context.CancelFunc

	in      input
	isTimed bool // a command has begun to arrive, and has a deadline

	isStranger atomic.Bool // its client has yet to log in

	deadline time.Time // of writes; the writing goroutine has it

	mu          sync.Mutex
	room        sync.Cond           // the first command was answered, or the session has ended
	first, last *request            // with an unwritten reply, the oldest first
	depth       int                 // from first to last
	bytes       int                 // of these
	open        int                 // of these, the planned and incomplete ones
	tails       map[string]*request // of each key, the last incomplete one
	alone       *request            // holds the connection, or waits until those before it are complete
	held        *request            // the oldest waiting for alone
	writing     bool                // a goroutine writes replies
	gone        bool                // no reply can be written any more
	closing     bool                // the connection ends after its replies
	idle        idleness
	own         own
}

var (
	errNoMemory = protocolError("the commands of all clients together exceed the server's memory")
	errTooBig   = protocolError("too big command")
	errTooSlow  = protocolError("the rest of a command did not arrive in time")
	errBehind   = protocolError("too many commands behind one that waits")
)

// arrive takes a command in. It blocks while the connection has too many under way. isLast: no more
// bytes are there.
func (s *session) arrive(args []string, size int, isLast bool) error {
	r := requests.Get().(*request)
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	for s.mustWait(r, size) && !s.gone && err == nil {
		switch s.write(); { // complete commands make room
		case s.alone != nil && s.alone == s.first && s.alone.plan.Waits && s.mustWait(r, size):
			err = errBehind // nothing is read, so the end of its client would not be noticed
		case s.mustWait(r, size) && !s.gone:
			s.room.Wait()
		}
	}
	if r.charged != nil {
		r.args, r.size = args, size
	}
	if s.gone || s.closing || err != nil {
		if r.charged != nil {
			r.charged.give(size + overhead)
		}
		return cmp.Or(err, errStopped)
	}
	s.push(r)
	s.idle.arrived++
	s.consider(isLast)
	switch {
	case r.charged == nil:
		r.done = true
		r.reply.Error("OOM " + string(errNoMemory))
	case s.alone != nil:
		if s.held == nil {
			s.held = r
		}
	default:
		s.plan(r)
	}
	s.own.mayTake = false
	if s.closing && s.own.taken == nil {
		return errStopped
	}
	return nil
}

// isFull reports whether the connection has as much under way as allowed.
func (s *session) isFull() bool {
	return s.depth >= s.server.limits.Pipeline || s.depth > 0 && s.bytes >= s.server.limits.Command
}

// mustWait charges a request, and reports whether there is no room for it. Clients that do not read must not stop the
// others. So a small request is taken beyond the memory of all while its connection has at most one under way, and no
// other request waits then.
func (s *session) mustWait(r *request, size int) bool {
	if of := s.budget(); r.charged == nil && of.take(size+overhead, s.depth < 2 && size <= small) {
		r.charged = of
	}
	return s.isFull() || r.charged == nil && s.depth > 1
}

// push appends a request to the ones without a reply.
func (s *session) push(r *request) {
	if s.last == nil {
		s.first = r
	} else {
		s.last.next = r
	}
	s.last = r
	s.depth++
	s.bytes += r.size
}

// pushMessage is the Push of the session.
func (s *session) pushMessage(write func(r *Reply)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone || s.closing || s.isFull() {
		return
	}
	r := requests.Get().(*request)
	write(&r.reply)
	r.size, r.done = r.reply.Len(), true
	of := s.budget()
	if r.size == 0 || !of.take(r.size+overhead, false) {
		r.free()
		return
	}
	r.charged = of
	s.push(r)
	go s.flush() // a client that does not read must not delay the publisher
}

// refuse answers the last input with an error.
func (s *session) refuse(err error) {
	r := requests.Get().(*request)
	r.reply.Error(err.Error())
	r.done = true
	s.push(r)
	s.leave()
}

// leave makes the session end after its answers to the commands under way. It cancels waiting ones.
func (s *session) leave() {
	s.closing = true
	if s.alone != nil {
		s.cancel()
	}
	s.write()
}

// plan lets Commands plan a command, and begins it unless others must be complete before.
func (s *session) plan(r *request) {
	r.plan = s.commands.Plan(r.args, &r.reply)
	s.recognize()
	s.server.stats.Commands.Add(1)
	switch {
	case r.plan.Close:
		s.closing, r.done = true, true
	case r.plan.Run == nil:
		r.done = true
		s.charge(r)
	case r.plan.Alone:
		s.alone = r
		if s.open == 0 {
			s.begin(r)
		}
	default:
		s.follow(r, r.plan.Key)
		for _, key := range r.plan.More {
			s.follow(r, key)
		}
		if r.before == 0 {
			s.begin(r)
		} else {
			s.open++
		}
	}
}

// follow makes a command wait for the last one with a key.
func (s *session) follow(r *request, key string) {
	last := s.tails[key]
	if key == "" || last == r {
		return
	}
	if last != nil {
		last.after = append(last.after, r)
		r.before++
	}
	if s.tails == nil {
		s.tails = map[string]*request{}
	}
	s.tails[key] = r
}

// charge counts the reply of a command until it is written: replies pile up behind an incomplete command, and for a
// client that does not read.
func (s *session) charge(r *request) {
	if n := len(r.reply.buf); r.charged != nil {
		r.size += n
		s.bytes += n
		r.charged.used.Add(int64(n))
	}
}

// begin starts a command.
func (s *session) begin(r *request) {
	s.open++
	switch j := (job{s, r}); {
	case !s.server.gate.enter(j):
	case !s.own.take(r):
		s.server.gate.start(j)
	}
}

// run runs a command inside the gate.
func (s *session) run(r *request) {
	began := time.Now()
	undo := r.plan.Run(s.ctx, &r.reply)
	if !r.plan.Waits {
		hasFailed := s.ctx.Err() != nil || bytes.HasPrefix(r.reply.buf, []byte{byte(resp.Error)})
		s.server.gate.leave(time.Since(began), hasFailed) // before a slow reader can hold this up
	}
	s.complete(r, undo)
}

// complete notes that a command is complete, begins its successors, and writes what can be written.
func (s *session) complete(r *request, undo func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.isOwn && undo != nil && s.own.hasEnded() {
		s.vanish() // not noticed by the reader
	}
	s.forget(r, r.plan.Key)
	for _, key := range r.plan.More {
		s.forget(r, key)
	}
	for _, next := range r.after {
		next.before--
		if next.before == 0 {
			s.server.gate.run(job{s, next})
		}
	}
	r.done, r.undo = true, undo
	s.charge(r)
	s.open--
	switch {
	case s.alone == r:
		s.alone = nil
		for s.held != nil && s.alone == nil {
			h := s.held
			switch s.held = h.next; {
			case h.done: // a message
			case s.closing:
				h.done = true // without a reply
			default:
				s.plan(h)
			}
		}
	case s.alone != nil && s.open == 0:
		s.begin(s.alone)
	}
	if s.gone {
		s.drop()
	} else {
		s.write()
	}
}

// forget notes that no command with a key waits for r.
func (s *session) forget(r *request, key string) {
	if s.tails[key] == r {
		delete(s.tails, key)
	}
}

func (s *session) flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.write()
}

// write writes the replies of the oldest complete commands, unless another goroutine does. s.mu is
// held, but not while bytes are written.
func (s *session) write() {
	if s.writing {
		return
	}
	s.writing = true
	for !s.gone && s.first != nil && s.first.done {
		if s.open > 0 { // others of the same batch end now: one write takes all their replies
			s.mu.Unlock()
			runtime.Gosched()
			s.mu.Lock()
		}
		out := buffers.Get().(*[]byte)
		n := 0
		for r := s.first; r != nil && r.done && len(*out) < maxWrite; r = r.next {
			*out = append(*out, r.reply.buf...)
			n++
		}
		s.mu.Unlock()
		s.extendDeadline()
		sent, err := s.conn.Write(*out)
		*out = (*out)[:0]
		if cap(*out) <= 2*maxWrite {
			buffers.Put(out)
		}
		s.mu.Lock()
		for ; n > 0 && len(s.first.reply.buf) <= sent; n-- { // the client may have these
			sent -= len(s.first.reply.buf)
			s.pop().free()
		}
		if err != nil {
			s.vanish()
		}
		s.room.Broadcast()
	}
	s.writing = false
	if s.gone {
		s.drop()
	} else if s.closing && s.first == nil {
		s.vanish()
	}
	s.room.Broadcast()
}

// extendDeadline has the next write fail when its time is up: the limit, or half of it after
// earlier writes. Setting a deadline costs as much as the rest of a small write.
func (s *session) extendDeadline() {
	limit := s.server.limits.Write
	if now := time.Now(); s.deadline.Sub(now) < limit/2 {
		s.deadline = now.Add(limit)
		_ = s.conn.SetWriteDeadline(s.deadline)
	}
}

// pop removes the oldest request.
func (s *session) pop() *request {
	r := s.first
	s.first = r.next
	if s.first == nil {
		s.last = nil
	}
	s.depth--
	s.bytes -= r.size
	if r.charged != nil {
		r.charged.give(r.size + overhead)
	}
	return r
}

// vanish notes that the client can no longer receive anything.
func (s *session) vanish() {
	if s.gone {
		return
	}
	s.gone = true
	s.cancel()
	_ = s.conn.Close()
	s.drop()
	s.room.Broadcast()
}

// drop undoes the complete commands with unwritten replies. Commands not begun never begin.
func (s *session) drop() {
	if s.writing {
		return // the writer refers to them, and calls drop at its end
	}
	s.held = nil
	for r := s.first; r != nil; r = r.next {
		if r.done && r.undo != nil {
			s.server.running.Go(r.undo)
			r.undo = nil
		}
	}
	if s.open == 0 {
		for s.first != nil {
			s.pop().free()
		}
	}
	s.room.Broadcast()
}

// isOver asks about the session's commands.
func (s *session) isOver(f func(Commands) bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return f(s.commands)
}

// stop has the session read no more commands, and end after its answers to those under way. It
// cancels waiting ones.
func (s *session) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.conn.SetReadDeadline(time.Unix(1, 0))
	s.leave()
}

// cut ends the connection without its replies.
func (s *session) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.vanish()
}
