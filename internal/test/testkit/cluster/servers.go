package cluster

import (
	"time"

	"github.com/redlock-go/redlock/internal/test/fakeredis"
)

// Servers is masters that are harmed together, all or some: as a slice of them.
type Servers []*fakeredis.Server

func (l Servers) each(do func(*fakeredis.Server)) {
	for _, s := range l {
		do(s)
	}
}

func (l Servers) Down()                 { l.each((*fakeredis.Server).Down) }
func (l Servers) Hang()                 { l.each((*fakeredis.Server).Hang) }
func (l Servers) Mute()                 { l.each((*fakeredis.Server).Mute) }
func (l Servers) Flush()                { l.each((*fakeredis.Server).Flush) }
func (l Servers) Delay(d time.Duration) { l.each(func(s *fakeredis.Server) { s.Delay(d) }) }
func (l Servers) Del(key string)        { l.each(func(s *fakeredis.Server) { s.Del(key) }) }

// Take gives a key to another client, for ever.
func (l Servers) Take(key string) {
	l.each(func(s *fakeredis.Server) { s.Set(key, "another's", 0) })
}
