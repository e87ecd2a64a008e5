package fakeredis

import (
	"errors"
	"time"
)

// Servers is masters that are harmed together, all or some: as a slice of them.
type Servers []*Server

// Each does something to all of them.
func (l Servers) Each(do func(*Server)) {
	for _, s := range l {
		do(s)
	}
}

func (l Servers) Down()                 { l.Each((*Server).Down) }
func (l Servers) Hang()                 { l.Each((*Server).Hang) }
func (l Servers) Mute()                 { l.Each((*Server).Mute) }
func (l Servers) Flush()                { l.Each((*Server).Flush) }
func (l Servers) Delay(d time.Duration) { l.Each(func(s *Server) { s.Delay(d) }) }
func (l Servers) Del(key string)        { l.Each(func(s *Server) { s.Del(key) }) }
func (l Servers) Deny(names ...string)  { l.Each(func(s *Server) { s.Deny(names...) }) }

// Take gives a key to another client, for ever.
func (l Servers) Take(key string) { l.Each(func(s *Server) { s.Set(key, "another's", 0) }) }

// Heal ends all faults.
func (l Servers) Heal() (err error) {
	l.Each(func(s *Server) { err = errors.Join(err, s.Heal()) })
	return err
}

// Holders is how many of them have a key.
func (l Servers) Holders(key string) (n int) {
	for _, s := range l {
		if _, ok := s.Get(key); ok {
			n++
		}
	}
	return n
}
