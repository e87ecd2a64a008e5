package fakeredis

import (
	"errors"
	"time"
)

// TB is StartN's part of a *testing.T or *testing.B: programs with an embedded server need not
// import package testing.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
}

// StartN starts n servers for a test and closes them when it ends. Each gets
// the options at its index, or the last ones given.
func StartN(t TB, n int, opts ...Options) Servers {
	t.Helper()
	if len(opts) == 0 {
		opts = []Options{{}}
	}
	servers := make(Servers, n)
	for i := range servers {
		s, err := Start(opts[min(i, len(opts)-1)])
		if err != nil {
			t.Fatalf("fakeredis: %v", err)
		}
		t.Cleanup(func() { _ = s.Close() })
		servers[i] = s
	}
	return servers
}

// Addrs lists the addresses of servers.
func Addrs(servers []*Server) []string {
	addrs := make([]string, len(servers))
	for i, s := range servers {
		addrs[i] = s.Addr()
	}
	return addrs
}

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
		_, plain := s.Get(key)
		if _, shared := s.Holders(key); plain || shared {
			n++
		}
	}
	return n
}
