package session

import (
	"errors"
	"os"
	"time"
)

// serve reads commands until the connection ends, or is idle.
func (s *session) serve() {
	err := s.read()
	if err == errIdle {
		s.in.end()
		s.server.running.Go(s.park)
		return
	}
	s.mu.Lock()
	if errors.Is(err, os.ErrDeadlineExceeded) && !s.closing {
		err = errTooSlow
	}
	if bad := protocolError(""); errors.As(err, &bad) && !s.gone {
		s.refuse(bad)
	} else if !s.closing {
		s.vanish() // the client is gone
	}
	s.write()
	for s.depth > 0 && !s.gone {
		s.room.Wait()
	}
	s.vanish()
	for s.open > 0 {
		s.room.Wait()
	}
	s.mu.Unlock()
	s.in.end()
	s.commands.Gone()
	s.server.end(s)
}

// errStopped ends the reading of a session. Its replies are still written.
var errStopped = errors.New("session: no more commands are read")

// read reads and starts commands. It returns the reason why there are no more.
func (s *session) read() error {
	for {
		used := 0
		for {
			args, n, err := s.in.next(used)
			if err != nil {
				return err
			}
			if n == 0 {
				break
			}
			used += n
			if len(args) > 0 {
				if err := s.arrive(args, n, used == len(s.in.buf)); err != nil {
					return err
				}
			}
		}
		if err := s.in.drop(used); err != nil {
			return err
		}
		if r := s.own.taken; r == nil {
			s.flush()
		} else {
			s.own.taken = nil
			s.run(r)
		}
		if err := s.fill(used > 0); err != nil {
			return err
		}
	}
}

// fill reads more bytes: the first ones of a command or, unless some were read, more of one.
func (s *session) fill(some bool) error {
	if begun := len(s.in.buf) > 0; begun && (some || !s.isTimed) {
		s.limitRead(time.Now().Add(s.server.limits.Read))
	} else if !begun && s.isTimed {
		s.limitRead(time.Time{})
	}
	n, err := s.in.receive(s.conn)
	switch {
	case n > 0:
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded) && s.mayPark():
		return errIdle
	}
	return err
}

// limitRead sets the deadline of reads, unless reading has ended: zero is none.
func (s *session) limitRead(t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isTimed, s.idle.isParking = !t.IsZero(), false
	if !s.closing {
		_ = s.conn.SetReadDeadline(t)
	}
}
