package fakeredis

import (
	"slices"
	"strconv"
	"time"
)

// trackingMode is a connection's mode set by CLIENT TRACKING and CLIENT CACHING.
type trackingMode struct {
	tracks  bool
	optIn   bool // only commands behind CLIENT CACHING YES
	noLoop  bool // changes by the connection itself are not reported
	caching bool // for the next command
}

// tracking is the registrations of a server: the connections to notify of the next change of a key.
// Registrations outlive CLIENT TRACKING OFF:
// their reports are lost, unless it is on again by then.
type tracking struct {
	keys    map[string][]*conn
	current *conn         // with a command running; nil: none
	cleans  bool          // the cleaner runs
	ended   chan struct{} // closed with the server
}

// cleaningCycle is the interval of looks for expired keys. Among a thousand keys with a time to
// live a real server finds one after seconds, since it looks at about twenty in each cycle.
const cleaningCycle = 100 * time.Millisecond

// TrackedKeys is the number of keys with a registration.
func (s *Server) TrackedKeys() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.tracking.keys)
}

// remember registers the connection for keys read by a command, if it tracks them. The caller holds
// s.mu. Inside a script it is called with all keys of the call at the first read: so does Redis 7,
// where others register only the keys read.
func (c *conn) remember(keys [][]byte) {
	if !c.tracks || c.optIn && !c.caching {
		return
	}
	if c.tracked == nil {
		c.tracked = make(map[string]struct{})
	}
	for _, key := range keys {
		if _, known := c.tracked[string(key)]; !known {
			c.tracked[string(key)] = struct{}{}
			t := &c.srv.tracking
			t.keys[string(key)] = append(t.keys[string(key)], c)
		}
	}
	c.srv.startCleaner()
}

// forgetKeys ends all registrations of a connection. The caller holds s.mu.
func (c *conn) forgetKeys() {
	t := &c.srv.tracking
	for key := range c.tracked {
		left := slices.DeleteFunc(t.keys[key], func(other *conn) bool { return other == c })
		t.keys[key] = left
		if len(left) == 0 {
			delete(t.keys, key)
		}
	}
	c.tracked = nil
}

// watches reports whether a key is tracked. The caller holds s.mu.
func (s *Server) watches(key []byte) bool {
	return len(s.tracking.keys) > 0 && len(s.tracking.keys[string(key)]) > 0
}

// touched notifies of a changed or removed key. The caller holds s.mu.
func (s *Server) touched(key []byte) {
	if !s.watches(key) {
		return
	}
	watchers := s.tracking.keys[string(key)]
	delete(s.tracking.keys, string(key))
	for _, c := range watchers {
		delete(c.tracked, string(key))
		if !c.noLoop || c != s.tracking.current {
			c.invalidate(Invalidation(string(key)))
		}
	}
}

// flushed notifies each tracking connection, registered or not, that all keys have gone, the
// flushing one too. The caller holds s.mu.
func (s *Server) flushed() {
	clear(s.tracking.keys)
	for c := range s.conns {
		clear(c.tracked)
		c.invalidate(Flushed)
	}
}

// startCleaner starts the cleaner if it has work. The caller holds s.mu.
func (s *Server) startCleaner() {
	t := &s.tracking
	if t.cleans || len(t.keys) == 0 || s.closed {
		return
	}
	t.cleans = true
	s.running.Add(1)
	go func() {
		defer s.running.Done()
		for more := true; more; {
			select {
			case <-t.ended:
				return
			case <-time.After(cleaningCycle):
				more = s.clean()
			}
		}
	}()
}

// clean removes expired tracked keys, and reports whether there are others. A
// frozen process cleans nothing.
func (s *Server) clean() (more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.faults.thawed == nil {
		now := s.now()
		for key := range s.tracking.keys {
			s.keys.get([]byte(key), now)
		}
	}
	s.tracking.cleans = len(s.tracking.keys) > 0
	return s.tracking.cleans
}

func (c *conn) clientTracking(args [][]byte) {
	mode := trackingMode{caching: c.caching}
	for _, word := range args[3:] {
		switch {
		case is(word, "OPTIN"):
			mode.optIn = true
		case is(word, "NOLOOP"):
			mode.noLoop = true
		default:
			c.fail(errSyntax)
			return
		}
	}
	switch {
	case is(args[2], "ON"): // also in RESP2, where nothing is ever reported
		mode.tracks = true
	case is(args[2], "OFF"):
		mode = trackingMode{}
	default:
		c.fail(errSyntax)
		return
	}
	c.trackingMode = mode
	c.ok()
}

// clientCaching knows YES.
func (c *conn) clientCaching(args [][]byte) {
	switch {
	case !c.tracks:
		c.fail("ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled")
	case is(args[2], "YES") && c.optIn:
		c.caching = true
		c.ok()
	default:
		c.fail(errSyntax)
	}
}

// Invalidation is the push about a key.
func Invalidation(key string) string {
	return ">2\r\n$10\r\ninvalidate\r\n*1\r\n$" + strconv.Itoa(len(key)) + "\r\n" + key + "\r\n"
}

// Flushed is the push about all keys at once.
const Flushed = ">2\r\n$10\r\ninvalidate\r\n_\r\n"
