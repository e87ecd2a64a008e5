package fleet

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/resp"
)

// answered is a batch that all nodes answer.
type answered struct {
	Batch
	b    *testing.B
	done bool
}

func (a *answered) Reply(int, int, *resp.Value) error { return nil }
func (a *answered) Fail(_, _ int, err error)          { a.b.Fatal(err) }
func (a *answered) Done()                             { a.done = true }

// BenchmarkBatch sends 64 commands to three nodes at once and reads their replies, those of the fake nodes'
// own work included.
func BenchmarkBatch(b *testing.B) {
	cfg := Config{DialTimeout: testkit.Patience, MaxInFlightBytes: 1 << 20, Probes: probeAll, Clock: clock.New()}
	var err error
	cfg.Addresses, err = conn.ParseAddresses(fakeredis.Addrs(fakeredis.StartN(b, 3)))
	require.NoError(b, err)
	var lock sync.Mutex
	f, err := New(cfg, &lock)
	require.NoError(b, err)
	defer f.Drain()
	testkit.Await(b, "three nodes", func() bool {
		lock.Lock()
		defer lock.Unlock()
		f.Sweep(0)
		return f.Fault(0) == nil && f.Fault(1) == nil && f.Fault(2) == nil
	})
	lock.Lock()
	defer lock.Unlock()
	defer f.Close()
	a := &answered{b: b}
	a.Owner, a.Replies = a, 64
	for range a.Replies {
		a.Buf = append(a.Buf, encode("PING")...)
	}
	b.ReportAllocs()
	for b.Loop() {
		a.done = false
		for f.Send(&a.Batch); !a.done; {
			f.Sweep(0)
		}
	}
}
