package engine

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/client/fleet"
)

// granting is a Fleet in memory, of which each node grants all when it is asked for replies.
type granting struct {
	plain
	nodes int
	sent  []*fleet.Batch
}

func (g *granting) Len() int                 { return g.nodes }
func (g *granting) CanBlock() bool           { return true }
func (g *granting) Check()                   {}
func (g *granting) Arm()                     {}
func (g *granting) ArmLate()                 {}
func (g *granting) Wait() bool               { return false }
func (g *granting) Drain()                   {}
func (g *granting) Close()                   { g.Sweep(0) }
func (g *granting) Send(b *fleet.Batch)      { g.sent = append(g.sent, b) }
func (g *granting) SendTo(int, *fleet.Batch) { panic("an errand") }

// Sweep answers each SET with OK, and each call of a script for one key with 1.
func (g *granting) Sweep(time.Duration) {
	for len(g.sent) > 0 {
		b := g.sent[0]
		g.sent = g.sent[:copy(g.sent, g.sent[1:])]
		v := &granted
		if bytes.Contains(b.Buf, evalsha) {
			v = &released
		}
		for node := range g.nodes {
			for i := range b.Replies {
				if err := b.Owner.Reply(node, i, v); err != nil {
					panic(err)
				}
			}
		}
		b.Owner.Done()
	}
}

var (
	granted, released = value(ok), value(one)
	evalsha           = []byte("EVALSHA")
)

// newGranting is an engine on five nodes in memory.
func newGranting(b *testing.B) *Engine {
	e := New(Config{Clock: clock.New(), MaxWaiting: 1024, Timeout: time.Second})
	attach(e, &granting{nodes: 5})
	b.ReportAllocs()
	return e
}

// BenchmarkPair acquires and releases a lock as a caller does who is alone: a batch for each step.
func BenchmarkPair(b *testing.B) {
	e := newGranting(b)
	c := e.call(Acquire, "lock:orders", time.Second)
	for b.Loop() {
		for _, kind := range []Kind{Acquire, Release} {
			c.Kind = kind
			if err := e.Do(c); err != nil || c.Err != nil {
				b.Fatal(err, c.Err)
			}
		}
	}
}

// BenchmarkBatch acquires 64 locks in one batch.
func BenchmarkBatch(b *testing.B) {
	e := newGranting(b)
	var all [64]countedOp
	for i := range all {
		o := &all[i]
		o.Kind, o.Key, o.TTL, o.Done, o.Ends = Acquire, fmt.Append(nil, "lock:", i), time.Second, o, Prompt
	}
	for b.Loop() {
		var ops list
		for i := range all {
			ops.push(&all[i].Op)
		}
		if err := e.enqueueOps(ops); err != nil {
			b.Fatal(err)
		}
		e.Drive()
		e.receive(func(int) {})
	}
}
