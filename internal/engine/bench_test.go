//go:build !race

package engine

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/clock"
	"github.com/redlock-go/redlock/resp"
)

// crowd is a mirror that answers every command of a batch with a yes.
type crowd struct {
	mirror
	speaks  []conn.Form
	merged  map[int]resp.Value // by how many locks are in a script call
	deleted resp.Value
}

func newCrowd(d conn.Form, upTo int) *crowd {
	c := &crowd{speaks: []conn.Form{d}, merged: map[int]resp.Value{}, deleted: value(":1\r\n")}
	c.set = value(ok)
	for n := range upTo + 1 {
		wire := string(resp.AppendArray(nil, n))
		for range n {
			wire += ":1\r\n"
		}
		c.merged[n] = value(wire)
	}
	return c
}

func (c *crowd) Forms() []conn.Form { return c.speaks }

func (c *crowd) Sweep(time.Duration) {
	for _, b := range c.batches {
		w := b.Owner.(*wire)
		for node := range c.Len() {
			for i, s := range w.spans {
				v := c.set
				switch {
				case w.form().IsScript(s.kind):
					v = c.merged[s.count]
				case s.kind == Release:
					v = c.deleted
				}
				if err := w.Reply(node, i, &v); err != nil {
					panic(err)
				}
			}
		}
		w.Done()
	}
	c.batches = c.batches[:0]
}

// tally is the Completion of many operations.
type tally struct{ done, won int }

func (t *tally) Complete(op *Op) {
	t.done++
	if op.Err == nil {
		t.won++
	}
}

// bulk are n operations that travel together.
type bulk struct {
	engine *Engine
	crowd  *crowd
	ops    []*Op
	tally
}

func newBulk(n int, d conn.Form) *bulk {
	b := &bulk{engine: New(Config{Clock: clock.System(), MaxWaiting: n}), crowd: newCrowd(d, n)}
	attach(b.engine, b.crowd)
	b.engine.watchdog.see(time.Second) // awake, as nobody takes the alarm
	for i := range n {
		b.ops = append(b.ops, &Op{Key: fmt.Appendf(nil, "lock:orders:%06d", i), Token: tokenOf(i), TTL: 10 * time.Second, Done: b})
	}
	return b
}

// pass takes all operations from the queue to their completion.
func (b *bulk) pass(kind Kind) error {
	b.engine.driver.Lock() // so that they wait for each other
	defer b.engine.driver.Unlock()
	for _, op := range b.ops {
		op.Kind = kind
		if err := b.engine.Submit(op); err != nil {
			return err
		}
	}
	for before := b.done; b.done < before+len(b.ops); {
		b.engine.flush()
		b.crowd.Sweep(0)
		b.engine.complete()
		b.engine.callTurn(0)
	}
	return nil
}

// names are those of dialects in the names of benchmarks.
var names = map[conn.Form]string{scripts: "scripts", valkey: "native"}

// BenchmarkBatch is an operation's way through the engine, without a network: in
// a batch of n from the queue to the planner, and from three nodes' replies
// through the votes to its completion.
func BenchmarkBatch(b *testing.B) {
	for _, d := range []conn.Form{scripts, valkey} {
		for _, kind := range []Kind{Acquire, Release} {
			if kind == Acquire && d != scripts {
				continue // it is the same in all dialects
			}
			for _, n := range []int{1, 64, 512} {
				b.Run(fmt.Sprintf("%v-%s/n=%d", kind, names[d], n), func(b *testing.B) {
					bulk := newBulk(n, d)
					if err := bulk.pass(kind); err != nil { // until every buffer has its size
						b.Fatal(err)
					}
					bulk.done = 0
					b.ReportAllocs()
					for b.Loop() {
						if err := bulk.pass(kind); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(bulk.done), "ns/lock")
				})
			}
		}
	}
}

// TestBatchesAllocateNothing: neither does a batch that many share.
func TestBatchesAllocateNothing(t *testing.T) {
	for _, d := range every {
		bulk := newBulk(100, d)
		for _, kind := range []Kind{Acquire, Extend, Release} {
			pass := func() {
				if err := bulk.pass(kind); err != nil {
					t.Fatal(err)
				}
			}
			pass() // until every buffer has its size
			if got := testing.AllocsPerRun(100, pass); got != 0 {
				t.Errorf("%v, %v: %v allocations, want 0", kind, d, got)
			}
		}
		if bulk.won != bulk.done || bulk.done == 0 {
			t.Errorf("%v: %d of %d won", d, bulk.won, bulk.done)
		}
	}
}

// BenchmarkEncode is the planner alone, the keys' hashes and the translation
// into each dialect of the fleet included.
func BenchmarkEncode(b *testing.B) {
	for _, c := range []struct {
		name     string
		kind     Kind
		dialects []conn.Form
	}{
		{"acquire", Acquire, []conn.Form{scripts}},
		{"extend-scripts", Extend, []conn.Form{scripts}},
		{"release-scripts", Release, []conn.Form{scripts}},
		{"release-native", Release, []conn.Form{valkey}},
		{"release-mixed", Release, []conn.Form{scripts, valkey, redis}},
	} {
		for _, n := range []int{1, 64, 512} {
			b.Run(fmt.Sprintf("%s/n=%d", c.name, n), func(b *testing.B) {
				bulk := newBulk(n, c.dialects[0])
				e := bulk.engine
				encode := func() {
					batch := e.batch()
					for i, op := range bulk.ops {
						op.Kind, op.next = c.kind, nil
						if i > 0 {
							bulk.ops[i-1].next = op
						}
					}
					e.planner.plan(batch, bulk.ops[0], n, c.dialects, false)
					batch.undecided, batch.owed = 0, 0
					e.keep(batch)
				}
				encode() // until every buffer has its size
				b.ReportAllocs()
				for b.Loop() {
					encode()
				}
			})
		}
	}
}

// BenchmarkDo is a caller alone that waits, without a network.
func BenchmarkDo(b *testing.B) {
	for _, kind := range []Kind{Acquire, Extend, Release} {
		b.Run(kind.String(), func(b *testing.B) {
			m := &mirror{set: value(ok), script: value(one)}
			e := New(Config{Clock: clock.System(), MaxWaiting: 10})
			attach(e, m)
			e.watchdog.see(time.Second)
			ctx, cancel := context.WithCancel(context.Background()) // with a Done to wait for
			defer cancel()
			b.ReportAllocs()
			for b.Loop() {
				c := e.Call(kind, "lock:orders", 10*time.Second)
				if err := e.Do(ctx, c); err != nil {
					b.Fatal(err)
				}
				e.Free(c)
			}
		})
	}
}
