//go:build unix

// Package burst tries more operations at once than the nodes answer in NodeTimeout.
package burst

import (
	"context"
	"fmt"
	"os/exec"
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
						t.Run("Submit", func(t *testing.T) {
							b := newBurst(t, addrs, n)
							for _, kind := range []redlock.OpKind{redlock.OpAcquire, redlock.OpExtend, redlock.OpRelease} {
								b.run(kind.String(), func(i int) {
									b.ops[i].Kind = kind
									if err := b.c.Submit(&b.ops[i]); err != nil {
										b.done <- err
									}
								})
							}
						})
						t.Run("Acquire", func(t *testing.T) {
							b := newBurst(t, addrs, n)
							b.run("TryAcquire", func(i int) {
								go func() {
									var err error
									b.locks[i], err = b.c.TryAcquire(context.Background(), fmt.Sprint("call:", i), time.Minute)
									b.done <- err
								}()
							})
							b.run("Release", func(i int) { go func() { b.done <- b.locks[i].Release(context.Background()) }() })
						})
					})
				}
			})
		}
	}
}

// burst is operations, or calls, all at once.
type burst struct {
	t     *testing.T
	c     *redlock.Client
	ops   []redlock.Op
	locks []redlock.Lock
	done  chan error
}

func newBurst(t *testing.T, addrs []string, n int) *burst {
	c := cluster.Connect(t, addrs, func(c *redlock.Config) { *c = redlock.Config{Nodes: addrs} })
	b := &burst{t: t, c: c, ops: make([]redlock.Op, n), locks: make([]redlock.Lock, n), done: make(chan error, n)}
	for i := range b.ops {
		b.ops[i] = redlock.Op{Key: fmt.Append(nil, "op:", i), TTL: time.Minute, Done: func(op *redlock.Op) { b.done <- op.Err() }}
	}
	return b
}

// run begins all, and waits for them.
func (b *burst) run(what string, begin func(i int)) {
	began, errs := time.Now(), map[string]int{}
	for i := range b.ops {
		begin(i)
	}
	for range b.ops {
		if err := <-b.done; err != nil {
			errs[err.Error()]++
		}
	}
	b.t.Log(what, time.Since(began).Round(time.Millisecond))
	require.Empty(b.t, errs, what)
}
