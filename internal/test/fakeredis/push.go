package fakeredis

import (
	"math/rand/v2"
	"time"
)

// PushFault is the faults of pushes on their way, until Heal. Of each push the chance of Drop is
// tried before that of Double.
type PushFault struct {
	Drop   float64       // the chance that it is lost
	Double float64       // the chance that it comes twice
	Delay  time.Duration // each comes up to so much later, not in order
}

// FaultPushes sets the faults of pushes about changed keys.
func (s *Server) FaultPushes(f PushFault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults.pushes = f
}

// Forge sends bytes to every RESP3 connection, between two replies: Invalidation of any key,
// Flushed, or bytes no server would send.
func (s *Server) Forge(raw string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		if c.proto == 3 {
			c.push(raw)
		}
	}
}

// invalidate sends a push about keys to a tracking connection. The caller holds s.mu.
func (c *conn) invalidate(push string) {
	if !c.tracks || c.proto != 3 {
		return
	}
	f := &c.srv.faults.pushes
	if f.Drop > 0 && rand.Float64() < f.Drop {
		return
	}
	c.pushLate(f.Delay, push)
	if f.Double > 0 && rand.Float64() < f.Double {
		c.pushLate(f.Delay, push)
	}
}

// pushLate is push after up to so long. The caller holds s.mu.
func (c *conn) pushLate(most time.Duration, raw string) {
	s := c.srv
	if most <= 0 || s.closed {
		c.push(raw)
		return
	}
	s.running.Add(1)
	go func() {
		defer s.running.Done()
		select {
		case <-c.done:
		case <-time.After(rand.N(most)):
			s.mu.Lock()
			defer s.mu.Unlock()
			c.push(raw)
		}
	}()
}

// push has bytes written after the reply in the making, or at once if there is none. The caller
// holds s.mu.
func (c *conn) push(raw string) {
	c.pushes = append(c.pushes, raw...)
	if c != c.srv.tracking.current {
		c.kick()
	}
}

// writePushes appends the pushes to the output, between two replies. The caller holds s.mu.
func (c *conn) writePushes() {
	c.out = append(c.out, c.pushes...)
	c.pushes = c.pushes[:0]
}
