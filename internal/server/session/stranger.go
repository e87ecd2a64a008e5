package session

import (
	"container/list"
	"sync"
)

// A stranger is a connection whose client has yet to log in. Strangers have bounds of their own, in
// number and in memory: they take no room from known clients. Beyond their number the one
// connected for longest makes room, so a client can always log in.

// strangers is these connections, the one connected for longest first.
type strangers struct {
	budget budget

	mu    sync.Mutex // a leaf
	order list.List
	at    map[*session]*list.Element
}

// The bounds of strangers: their part of the memory, and the bytes of a command.
const (
	strangersPart   = 16
	strangerCommand = 16 << 10
)

// add notes a connection. Beyond the most it ends the first.
func (s *strangers) add(n *session, most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at == nil {
		s.at = map[*session]*list.Element{}
	}
	if s.at[n] != nil {
		return
	}
	s.at[n] = s.order.PushBack(n)
	if s.order.Len() > most {
		first := s.order.Remove(s.order.Front()).(*session)
		delete(s.at, first)
		go first.cut()
	}
}

func (s *strangers) remove(n *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := s.at[n]; at != nil {
		s.order.Remove(at)
		delete(s.at, n)
	}
}

// recognize notes whether the client has logged in by its last command, or is a stranger again.
func (s *session) recognize() {
	is := s.commands.IsStranger()
	if is == s.isStranger.Load() {
		return
	}
	s.isStranger.Store(is)
	if is {
		s.server.unknown.add(s, s.server.limits.Strangers)
	} else {
		s.server.unknown.remove(s)
	}
}

// budget is the memory used by the session.
func (s *session) budget() *budget {
	if s.isStranger.Load() {
		return &s.server.unknown.budget
	}
	return &s.server.budget
}

// mostBytes bounds a command.
func (s *session) mostBytes() int {
	if s.isStranger.Load() {
		return min(strangerCommand, s.server.limits.Command)
	}
	return s.server.limits.Command
}
