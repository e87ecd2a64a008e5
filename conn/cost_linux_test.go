package conn_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
)

// BenchmarkCost measures what the client itself needs for a lock: one processor, and nodes in memory, without a
// system call. It shows differences of 5 %. Read the least of several rounds (-count): what is above it is other
// work on the machine.
func BenchmarkCost(b *testing.B) {
	conn.InMemory(b)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	client, err := redlock.New(redlock.Config{Nodes: fakeredis.Addrs(fakeredis.StartN(b, 5)), NodeTimeout: time.Minute, StallTimeout: time.Minute})
	require.NoError(b, err)
	defer client.Close()
	require.NoError(b, client.ReadyAll(b.Context()))
	for name, pairs := range map[string]func(*redlock.Client, int, int){"goroutines": byGoroutines, "submit": bySubmit} {
		for _, callers := range []int{64, 512, 2048} {
			b.Run(fmt.Sprintf("%s=%d", name, callers), func(b *testing.B) {
				pairs(client, callers, 4)
				runtime.GC()
				before := processorTime()
				b.ResetTimer()
				pairs(client, callers, max(1, b.N/callers))
				b.ReportMetric(float64(processorTime()-before)/float64(time.Microsecond)/float64(max(1, b.N/callers)*callers), "us/pair")
			})
		}
	}
}

func processorTime() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// byGoroutines has as many callers acquire and release so many locks each.
func byGoroutines(client *redlock.Client, callers, each int) {
	var all sync.WaitGroup
	for i := range callers {
		key := fmt.Sprintf("bench:worker:%d", i)
		all.Go(func() {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			for range each {
				lock, err := client.TryAcquire(ctx, key, 10*time.Second)
				if err == nil {
					err = lock.Release(ctx)
				}
				if err != nil {
					panic(err)
				}
			}
		})
	}
	all.Wait()
}

func bySubmit(client *redlock.Client, callers, each int) {
	var all sync.WaitGroup
	all.Add(callers)
	for i := range callers {
		left := 2 * each
		op := &redlock.Op{Key: fmt.Appendf(nil, "bench:worker:%d", i), TTL: 10 * time.Second}
		op.Done = func(op *redlock.Op) {
			if op.Err() != nil {
				panic(op.Err())
			}
			if left == 0 {
				all.Done()
				return
			}
			left--
			if op.Kind == redlock.OpAcquire {
				op.Kind = redlock.OpRelease
			} else {
				op.Kind = redlock.OpAcquire
			}
			if err := client.Submit(op); err != nil {
				panic(err)
			}
		}
		op.Done(op)
	}
	all.Wait()
}
