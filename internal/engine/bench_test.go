//go:build !race

package engine

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/clock"
	"github.com/redlock-go/redlock/resp"
)

// instantFleet is a Fleet that answers every command at the next Sweep, yes or no.
type instantFleet struct {
	plain
	speaks      []conn.Form
	set, native resp.Value
	script      []resp.Value // by how many locks are in a call
	batches     []*conn.Batch
}

func newInstant(form conn.Form, granted bool, upTo int) *instantFleet {
	f := &instantFleet{speaks: []conn.Form{form}, set: value(ok), native: value(":1\r\n")}
	element := ":1\r\n"
	if !granted {
		element, f.set, f.native = ":0\r\n", value(null), value(":0\r\n")
	}
	for n := range upTo + 1 {
		f.script = append(f.script, value(fmt.Sprintf("*%d\r\n", n)+strings.Repeat(element, n)))
	}
	return f
}

func (f *instantFleet) Len() int                { return 3 }
func (f *instantFleet) Forms() []conn.Form      { return f.speaks }
func (f *instantFleet) Send(b *conn.Batch)      { f.batches = append(f.batches, b) }
func (f *instantFleet) SendTo(int, *conn.Batch) {}
func (f *instantFleet) Check()                  {}
func (f *instantFleet) CanBlock() bool          { return true }
func (f *instantFleet) Arm()                    {}
func (f *instantFleet) Wait() bool              { return false }
func (f *instantFleet) Close()                  {}
func (f *instantFleet) Drain()                  {}

func (f *instantFleet) Sweep(time.Duration) {
	for _, b := range f.batches {
		w := b.Owner.(*wire)
		for node := range f.Len() {
			for i, s := range w.spans {
				v := &f.set
				switch {
				case w.form().IsScript(s.kind):
					v = &f.script[s.count]
				case s.kind == Release:
					v = &f.native
				}
				if err := w.Reply(node, i, v); err != nil {
					panic(err)
				}
			}
		}
		w.Done()
	}
	f.batches = f.batches[:0]
}

// bulk are n operations that travel together, and their Completion.
type bulk struct {
	*Engine
	fleet     *instantFleet
	ops       []*Op
	done, won int
}

func (b *bulk) Complete(op *Op) {
	b.done++
	if op.Err == nil {
		b.won++
	}
}

func newBulk(n int, form conn.Form, granted bool) *bulk {
	b := &bulk{Engine: New(Config{Clock: clock.New(), MaxWaiting: n}), fleet: newInstant(form, granted, n)}
	attach(b.Engine, b.fleet)
	b.watchdog.see(time.Second) // it is awake: no goroutine takes the alarm
	for i := range n {
		b.ops = append(b.ops, &Op{Key: fmt.Appendf(nil, "lock:orders:%06d", i), Token: tokenOf(i), TTL: 10 * time.Second, Done: b})
	}
	return b
}

// pass takes all operations from the queue to their completion.
func (b *bulk) pass(t testing.TB, kind Kind) {
	b.driver.Lock() // so that they wait for each other
	defer b.driver.Unlock()
	for _, op := range b.ops {
		op.Kind, op.TTL = kind, 10*time.Second
		if err := b.Submit(op); err != nil {
			t.Fatal(err)
		}
	}
	for before := b.done; b.done < before+len(b.ops); {
		b.flush()
		b.fleet.Sweep(0)
		b.complete()
		b.callTurn(0)
	}
}

// blockingCall is one call, from Call to Free.
func (b *bulk) blockingCall(t testing.TB, ctx context.Context, kind Kind) {
	c := b.call(kind, "lock:orders", 10*time.Second)
	if err := b.do(ctx, c); err != nil {
		t.Fatal(err)
	}
	b.Free(c)
}

// TestAllocatesNothing: neither blocking calls nor operations in batches, won or
// taken, nor the cleanup of an acquire.
func TestAllocatesNothing(t *testing.T) {
	for _, form := range every {
		for _, granted := range []bool{true, false} {
			b := newBulk(100, form, granted)
			nothing := func(what string, f func()) {
				f() // until every buffer has its size
				require.Zero(t, testing.AllocsPerRun(200, f), "%s, %v, granted: %v", what, form, granted)
			}
			for _, kind := range []Kind{Acquire, Extend, Release} {
				nothing(kind.String(), func() { b.pass(t, kind) })
				nothing("blocking "+kind.String(), func() { b.blockingCall(t, context.Background(), kind) })
			}
			require.Equal(t, granted, b.won == b.done)
			b.ops[0].Kind, b.ops[0].TTL = Acquire, time.Second
			nothing("Cancel", func() {
				require.NoError(t, b.Submit(b.ops[0]))
				if !b.Cancel(b.ops[0]) { // its release follows
					t.Fatal("too late")
				}
				b.driver.Lock()
				for range 2 {
					b.fleet.Sweep(0)
					b.flush()
				}
				b.driver.Unlock()
			})
			require.Zero(t, b.unanswered)
			require.Zero(t, b.depth.Load())
		}
	}
}

// BenchmarkBatch is an operation's way through the engine, without a network: in a
// batch of n from the queue to the planner, and from three nodes' replies through
// the votes to its completion.
func BenchmarkBatch(b *testing.B) {
	for _, c := range []struct {
		name string
		kind Kind
		form conn.Form
	}{{"acquire", Acquire, scripts}, {"extend-scripts", Extend, scripts}, {"release-scripts", Release, scripts}, {"release-native", Release, valkey}} {
		for _, n := range []int{1, 64, 512} {
			b.Run(fmt.Sprintf("%s/n=%d", c.name, n), func(b *testing.B) {
				bulk := newBulk(n, c.form, true)
				bulk.pass(b, c.kind) // until every buffer has its size
				bulk.done = 0
				b.ReportAllocs()
				for b.Loop() {
					bulk.pass(b, c.kind)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(bulk.done), "ns/lock")
			})
		}
	}
}

// BenchmarkDo is one caller that waits, without a network.
func BenchmarkDo(b *testing.B) {
	for _, kind := range []Kind{Acquire, Extend, Release} {
		b.Run(kind.String(), func(b *testing.B) {
			bulk := newBulk(1, scripts, true)
			ctx, cancel := context.WithCancel(context.Background()) // with a Done to wait for
			defer cancel()
			b.ReportAllocs()
			for b.Loop() {
				bulk.blockingCall(b, ctx, kind)
			}
		})
	}
}
