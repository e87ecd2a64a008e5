package fakeredis

import (
	"strings"
	"time"

	"github.com/redlock-go/redlock/internal/test/fencenode"
)

// Results of PTTL that are no TTLs.
const (
	// NoTTL is the TTL of a key that lives for ever.
	NoTTL time.Duration = -1
	// NoKey is the TTL of a missing key.
	NoKey time.Duration = -2
)

// Get returns the value of a key.
func (s *Server) Get(key string) (value string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.keys.get([]byte(key), s.now())
	if e == nil {
		return "", false
	}
	return string(e.value()), true
}

// TTL returns how long a key has left, NoTTL or NoKey.
func (s *Server) TTL(key string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	switch e := s.keys.get([]byte(key), now); {
	case e == nil:
		return NoKey
	case e.expires == never:
		return NoTTL
	default:
		return time.Duration(e.expires-now) * time.Millisecond
	}
}

// Set stores a value under a key, for ever if the TTL is zero.
func (s *Server) Set(key, value string, ttl time.Duration) {
	s.plant(key, value, stringKind, ttl)
}

// Plant makes a key one of a foreign type, such as "list".
func (s *Server) Plant(key, kind string) { s.plant(key, "", kind, 0) }

func (s *Server) plant(key, value, kind string, ttl time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, expires := s.now(), never
	if ttl > 0 {
		expires = now + max(ttl.Milliseconds(), 1)
	}
	t := &s.keys
	t.put(t.get([]byte(key), now), []byte(key), []byte(value), kind, expires, now)
}

// Del removes keys.
func (s *Server) Del(keys ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range keys {
		s.keys.del([]byte(key), s.now())
	}
}

// Keys returns the keys, in no order.
func (s *Server) Keys() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var keys []string
	s.keys.each(s.now(), func(e *entry) { keys = append(keys, string(e.key())) })
	return keys
}

// Len is how many keys there are.
func (s *Server) Len() int { return len(s.Keys()) }

// Flush removes every key.
func (s *Server) Flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flush()
}

// FlushOther acts as the flush of another database, by others.
func (s *Server) FlushOther() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flushed()
}

// probeKey is the key of a client's probes.
const probeKey = "redlock:probe"

func isProbe(args [][]byte) bool {
	for i := 1; i < len(args) && i <= 3; i++ { // EVALSHA digest 1 key
		if string(args[i]) == probeKey {
			return true
		}
	}
	return false
}

// Commands returns how often each command was received, by its name in upper case, failed ones
// included. Commands on the key of a handshake's probes are not counted.
func (s *Server) Commands() map[string]int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := make(map[string]int64)
	for i, n := range s.calls {
		if n > 0 {
			calls[strings.ToUpper(commands[i].name)] = n
		}
	}
	return calls
}

// Count is how often a command was received.
func (s *Server) Count(name string) int64 { return s.Commands()[strings.ToUpper(name)] }

// Conns is the number of open connections.
func (s *Server) Conns() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// FlushScripts forgets the loaded scripts.
func (s *Server) FlushScripts() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scripts = [scripts]bool{}
}

// OnCommand makes the server call f with each command before it runs it, on the goroutine of the
// connection. f gets the id of the connection. No lock is held: f may use the server, and while it
// blocks, only this connection waits. Nil ends the calls.
func (s *Server) OnCommand(f func(conn int64, args []string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hook = f
}

// OnWrite makes the server call f with each key and value at the moment it stores them. The server
// is locked: f must not use it. Nil ends the calls.
func (s *Server) OnWrite(f func(key, value string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes = f
}

// wrote implements watcher. The caller holds s.mu.
func (s *Server) wrote(key, value []byte) {
	if s.writes != nil {
		s.writes(string(key), string(value))
	}
}

// SetClock sets the server's clock ahead of Options.Now, or back. As on a real server, TIME shows
// the other time at once, and existing keys live shorter, or longer, by the step.
func (s *Server) SetClock(ahead time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ahead = ahead
}

// Fence returns a copy of a fleet's tokens at a key.
func (s *Server) Fence(key string) (n fencenode.Node, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.keys.get([]byte(key), s.now())
	if e == nil || e.fence == nil {
		return fencenode.Node{}, false
	}
	return *cloneFence(e.fence), true
}

// SetFence gives a key the tokens of a fleet, such as earlier ones: a server comes
// back with an older file like that.
func (s *Server) SetFence(key string, n fencenode.Node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, t := s.now(), &s.keys
	t.put(t.get([]byte(key), now), []byte(key), nil, fenceKind, never, now)
	t.get([]byte(key), now).fence = cloneFence(&n)
}
