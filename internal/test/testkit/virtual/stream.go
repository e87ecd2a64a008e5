package virtual

import (
	"io"
	"os"
	"time"

	"github.com/redlock-go/redlock/internal/base/errno"
)

// window is how many bytes may be on their way before a writer waits.
const window = 256 << 10

// The ends of a stream.
const (
	reading = iota
	writing
)

// stream is one direction of a connection: bytes arrive in the order of the writes, each part when
// it is due. The mutex of the network guards it.
type stream struct {
	path  *path
	parts []part
	size  int       // bytes of the parts
	last  time.Time // when the last part is due
	lost  bool      // writes vanish, the end too
	ends  [2]end
}

// part is bytes with one arrival. The end of a stream is a part without bytes.
type part struct {
	due  time.Time // zero: at the end of the path's hold
	data []byte
}

// end is a reader, or a writer.
type end struct {
	err   error         // why it cannot go on
	limit time.Time     // its deadline, or zero
	wake  chan struct{} // holds one
	timer *time.Timer   // of the waiting one
}

// ring has a waiting end look again.
func (e *end) ring() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// stopped is why the end cannot go on.
func (e *end) stopped(now time.Time) error {
	if e.err == nil && !e.limit.IsZero() && !now.Before(e.limit) {
		return os.ErrDeadlineExceeded
	}
	return e.err
}

// wait waits until the end is rung, or until a time, if there is one.
func (e *end) wait(until time.Time) {
	if until.IsZero() {
		<-e.wake
		return
	}
	if e.timer == nil {
		e.timer = time.NewTimer(0)
	}
	e.timer.Reset(time.Until(until))
	select {
	case <-e.wake:
		e.timer.Stop() // or the bubble's time would go on to it
	case <-e.timer.C:
	}
}

func newStream(p *path) *stream {
	s := &stream{path: p}
	for i := range s.ends {
		s.ends[i].wake = make(chan struct{}, 1)
	}
	p.streams[s] = struct{}{}
	return s
}

// read returns the due bytes, waits for the next, or returns why there are none.
func (s *stream) read(b []byte) (int, error) {
	for {
		s.path.net.mu.Lock()
		n, next, err := s.take(b)
		s.path.net.mu.Unlock()
		if n > 0 || err != nil || len(b) == 0 {
			return n, err
		}
		s.ends[reading].wait(next)
	}
}

// take is read without waiting. It returns when there is more to see.
func (s *stream) take(b []byte) (n int, next time.Time, err error) {
	e := &s.ends[reading]
	now := time.Now()
	if err := e.stopped(now); err != nil {
		return 0, next, err
	}
	next = e.limit
	for len(s.parts) > 0 && n < len(b) {
		p := &s.parts[0]
		if p.due.IsZero() {
			break
		}
		if p.due.After(now) {
			if next.IsZero() || p.due.Before(next) {
				next = p.due
			}
			break
		}
		if len(p.data) == 0 {
			if n == 0 {
				err = io.EOF
			}
			break
		}
		m := copy(b[n:], p.data)
		n += m
		p.data = p.data[m:]
		if len(p.data) == 0 {
			s.parts = s.parts[1:]
		}
	}
	s.size -= n
	if n > 0 {
		s.ends[writing].ring()
	}
	return n, next, err
}

// hasEnded reports whether all bytes before the end were read.
func (s *stream) hasEnded(now time.Time) bool {
	if err := s.ends[reading].stopped(now); err != nil || len(s.parts) == 0 {
		return err != nil
	}
	p := &s.parts[0]
	return len(p.data) == 0 && !p.due.IsZero() && !p.due.After(now)
}

// write sends bytes on their way, and waits while too many are.
func (s *stream) write(b []byte) (int, error) {
	e := &s.ends[writing]
	for len(b) > 0 {
		s.path.net.mu.Lock()
		err, limit, fits := e.stopped(time.Now()), e.limit, s.size < window
		if err == nil && fits {
			s.put(append([]byte(nil), b...))
		}
		s.path.net.mu.Unlock()
		if err != nil {
			return 0, err
		}
		if fits {
			break
		}
		e.wait(limit)
	}
	return len(b), nil
}

// put appends a part, unless it vanishes.
func (s *stream) put(data []byte) {
	if s.lost {
		return
	}
	p := part{data: data}
	if !s.path.held {
		p.due = s.path.due(s.last)
		s.last = p.due
	}
	s.parts = append(s.parts, p)
	s.size += len(data)
	s.ends[reading].ring()
}

// release has the held parts arrive.
func (s *stream) release() {
	for i := range s.parts {
		if p := &s.parts[i]; p.due.IsZero() {
			p.due = s.path.due(s.last)
			s.last = p.due
		}
	}
	s.ends[reading].ring()
}

// vanish has nothing arrive any more.
func (s *stream) vanish() {
	s.lost, s.parts, s.size = true, nil, 0
	s.ends[writing].ring()
}

func (s *stream) stop(i int, err error) {
	if e := &s.ends[i]; e.err == nil {
		e.err = err
		e.ring()
	}
	if s.ends[reading].err != nil {
		delete(s.path.streams, s)
	}
}

// orphan ends the writing end. The other reads the written bytes, and the end, later by this much.
func (s *stream) orphan(late time.Duration) {
	if s.ends[writing].err != nil {
		return
	}
	for i := range s.parts {
		if p := &s.parts[i]; !p.due.IsZero() {
			p.due = p.due.Add(late)
		}
	}
	s.last = s.path.due(s.last).Add(late)
	s.put(nil)
	s.stop(writing, errno.ConnReset)
}

func (s *stream) reset() {
	s.vanish()
	s.stop(writing, errno.ConnReset)
	s.stop(reading, errno.ConnReset)
}
