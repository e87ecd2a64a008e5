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

// mirror is a Fleet that answers at once what it was told to answer.
type mirror struct {
	plain
	set, script resp.Value
	batches     []*conn.Batch
}

func (m *mirror) Len() int                { return 3 }
func (m *mirror) Send(b *conn.Batch)      { m.batches = append(m.batches, b) }
func (m *mirror) SendTo(int, *conn.Batch) {}
func (m *mirror) Check()                  {}
func (m *mirror) CanBlock() bool          { return true }
func (m *mirror) Arm()                    {}
func (m *mirror) Wait() bool              { return false }
func (m *mirror) Close()                  {}
func (m *mirror) Drain()                  {}

func (m *mirror) Sweep(time.Duration) {
	for _, b := range m.batches {
		v := &m.script
		if string(b.Buf[8:11]) == "SET" {
			v = &m.set
		}
		for node := range 3 {
			if err := b.Owner.Reply(node, 0, v); err != nil {
				panic(err)
			}
		}
		b.Owner.Done()
	}
	m.batches = m.batches[:0]
}

func value(wire string) (v resp.Value) {
	var d resp.Decoder
	if _, err := d.Decode([]byte(wire), &v); err != nil {
		panic(err)
	}
	return v
}

// TestAllocatesNothing: neither the blocking calls nor Submit, in the won case
// and in the taken one, the cleanup of an acquire among them.
func TestAllocatesNothing(t *testing.T) {
	for _, c := range []struct{ set, script string }{{ok, one}, {null, zero}} {
		m := &mirror{set: value(c.set), script: value(c.script)}
		e := New(Config{Clock: clock.System(), MaxWaiting: 10})
		attach(e, m)
		e.watchdog.see(time.Second) // awake, as nobody takes the alarm
		sum := 0
		for _, kind := range []Kind{Acquire, Extend, Release} {
			got := testing.AllocsPerRun(1000, func() {
				w := e.call(kind, "key", time.Second)
				if err := e.do(context.Background(), w); err != nil {
					t.Fatal(err)
				}
				sum += w.Tally.Granted()
				e.Free(w)
			})
			if got != 0 {
				t.Errorf("%s, %q: %v allocations, want 0", kind.String(), c.set, got)
			}
		}
		op := &Op{Kind: Acquire, Key: []byte("key"), TTL: time.Second}
		op.Done = &outcome{}
		got := testing.AllocsPerRun(1000, func() {
			if err := e.Submit(op); err != nil {
				t.Fatal(err)
			}
			if !e.Cancel(op) { // its release follows
				t.Fatal("too late")
			}
			e.driver.Lock()
			m.Sweep(0)
			e.flush()
			m.Sweep(0)
			e.flush()
			e.driver.Unlock()
		})
		if got != 0 {
			t.Errorf("Submit and Cancel, %q: %v allocations, want 0", c.set, got)
		}
		if c.set == ok && sum == 0 {
			t.Error("nothing was granted")
		}
		if e.unanswered != 0 || e.depth.Load() != 0 {
			t.Error(fmt.Sprint("left: ", e.unanswered, e.depth.Load()))
		}
	}
}
