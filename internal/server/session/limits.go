package session

import (
	"cmp"
	"sync/atomic"
	"time"
)

// DefaultClients is Limits.Clients by default.
const DefaultClients = 16384

// Limits bound the resources of clients. A zero field means its default.
type Limits struct {
	Clients   int           // connections. Default: 16384
	Command   int           // bytes of a command, and of a connection's commands under way. Default: 128 KiB
	Bulk      int           // bytes of an argument. Default: 64 KiB
	Arguments int           // of a command. Default: 128
	Pipeline  int           // a connection's commands under way. Default: 1024
	Memory    int64         // bytes of commands of all connections. Default: 64 MiB
	Strangers int           // connections whose clients have not logged in. Default: a quarter of Clients
	Read      time.Duration // a client's time to send the rest of a command. Default: 10 s
	Write     time.Duration // a client's time to receive replies. Default: 10 s
}

func (l Limits) withDefaults() Limits {
	return Limits{
		Clients: cmp.Or(max(l.Clients, 0), DefaultClients), Command: cmp.Or(l.Command, 128<<10), Bulk: cmp.Or(l.Bulk, 64<<10),
		Arguments: cmp.Or(l.Arguments, 128), Pipeline: cmp.Or(l.Pipeline, 1024), Memory: cmp.Or(l.Memory, 64<<20),
		Strangers: cmp.Or(l.Strangers, max(1, cmp.Or(max(l.Clients, 0), DefaultClients)/4)),
		Read:      cmp.Or(l.Read, 10*time.Second), Write: cmp.Or(l.Write, 10*time.Second),
	}
}

// Bytes of commands.
const (
	overhead = 256 // the cost beside a command's own: one of five has a request, its words and a reply
	small    = 512 // the largest size of an ordinary command, such as one on a lock
)

// budget counts the bytes of commands, shared by all connections.
type budget struct {
	most int64
	used atomic.Int64
}

// take takes n bytes, or none if fewer are left, unless it must.
func (b *budget) take(n int, must bool) bool {
	if b.used.Add(int64(n)) <= b.most || must {
		return true
	}
	b.give(n)
	return false
}

func (b *budget) give(n int) { b.used.Add(-int64(n)) }
