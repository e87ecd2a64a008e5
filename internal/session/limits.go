package session

import (
	"sync/atomic"
	"time"
)

// Limits bound what clients can use. A zero field means its default.
type Limits struct {
	Clients   int           // connections. Default: 16384
	Command   int           // bytes of a command, and of those of a connection under way. Default: 128 KiB
	Bulk      int           // bytes of an argument. Default: 64 KiB
	Arguments int           // of a command. Default: 128
	Pipeline  int           // commands of a connection under way. Default: 1024
	Memory    int64         // bytes of commands of all connections. Default: 64 MiB
	Read      time.Duration // how long a client may take to send a command that it has begun. Default: 10 s
	Write     time.Duration // how long a client may take to receive replies. Default: 10 s
}

func (l Limits) withDefaults() Limits {
	for _, n := range []struct {
		field *int
		value int
	}{{&l.Clients, 16384}, {&l.Command, 128 << 10}, {&l.Bulk, 64 << 10}, {&l.Arguments, 128}, {&l.Pipeline, 1024}} {
		if *n.field <= 0 {
			*n.field = n.value
		}
	}
	if l.Memory <= 0 {
		l.Memory = 64 << 20
	}
	if l.Read <= 0 {
		l.Read = 10 * time.Second
	}
	if l.Write <= 0 {
		l.Write = 10 * time.Second
	}
	return l
}

// overhead is what a command costs the budget beside its bytes: one of five bytes has a request,
// its words and a reply.
const overhead = 256

// budget is the bytes of commands that all connections share.
type budget struct {
	most int64
	used atomic.Int64
}

// take takes n bytes, or none if fewer are left.
func (b *budget) take(n int) bool {
	if b.used.Add(int64(n)) <= b.most {
		return true
	}
	b.give(n)
	return false
}

func (b *budget) give(n int) { b.used.Add(-int64(n)) }
