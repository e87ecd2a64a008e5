//go:build unix

package e2e

import (
	"context"
	"fmt"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/realredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// TestRealBurst: of more operations at once than the nodes answer in NodeTimeout none fails, with
// the defaults, also where another program keeps a processor busy.
func TestRealBurst(t *testing.T) {
	if !testkit.Long() {
		t.Skip("REDLOCK_LONG=1 runs bursts of 60,000 beside a busy loop")
	}
	for _, n := range []int{16000, 60000} {
		for _, busy := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d,busy=%v", n, busy), func(t *testing.T) {
				if busy {
					loop := exec.Command("sh", "-c", "while :; do :; done")
					require.NoError(t, loop.Start())
					t.Cleanup(func() { _ = loop.Process.Kill(); _ = loop.Wait() })
				}
				for run := range 10 {
					t.Run(fmt.Sprint(run), func(t *testing.T) {
						addrs := cluster.RealAddrs(realredis.StartN(t, 3))
						t.Run("Submit", func(t *testing.T) { burstOfOps(t, addrs, n) })
						t.Run("Acquire", func(t *testing.T) { burstOfCalls(t, addrs, n) })
					})
				}
			})
		}
	}
}

func burstOfOps(t *testing.T, addrs []string, n int) {
	c := cluster.Connect(t, addrs, func(c *redlock.Config) { *c = redlock.Config{Nodes: addrs} })
	ops := make([]redlock.Op, n)
	done := make(chan error, n)
	for i := range ops {
		ops[i] = redlock.Op{Key: fmt.Append(nil, "op:", i), TTL: time.Minute, Done: func(op *redlock.Op) { done <- op.Err() }}
	}
	for _, kind := range []redlock.OpKind{redlock.OpAcquire, redlock.OpExtend, redlock.OpRelease} {
		began, errs := time.Now(), map[string]int{}
		for i := range ops {
			ops[i].Kind = kind
			if err := c.Submit(&ops[i]); err != nil {
				done <- err
			}
		}
		for range ops {
			if err := <-done; err != nil {
				errs[err.Error()]++
			}
		}
		t.Log(kind, time.Since(began).Round(time.Millisecond))
		require.Empty(t, errs, "%v", kind)
	}
}

func burstOfCalls(t *testing.T, addrs []string, n int) {
	c := cluster.Connect(t, addrs, func(c *redlock.Config) { *c = redlock.Config{Nodes: addrs} })
	locks, errs := make([]redlock.Lock, n), make([]error, n)
	each := func(what string, f func(i int) error) {
		began := time.Now()
		var all sync.WaitGroup
		for i := range n {
			all.Go(func() { errs[i] = f(i) })
		}
		all.Wait()
		t.Log(what, time.Since(began).Round(time.Millisecond))
		count := map[string]int{}
		for _, err := range errs {
			if err != nil {
				count[err.Error()]++
			}
		}
		require.Empty(t, count, what)
	}
	ctx := context.Background()
	each("TryAcquire", func(i int) (err error) {
		locks[i], err = c.TryAcquire(ctx, fmt.Sprint("call:", i), time.Minute)
		return err
	})
	each("Release", func(i int) error { return locks[i].Release(ctx) })
}
