// Package e2e has the black-box tests of the client: against fake masters whose faults are switched
// on and off, and against real servers of each kind on this machine (TestReal…).
package e2e

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// ttl is the TTL of locks that last for a whole test.
const ttl = cluster.TTL

func TestMain(m *testing.M) { cluster.Main(m) }

// inLine begins a call of Acquire that has to wait, and returns when the client's lines have so many.
func inLine(t *testing.T, c *redlock.Client, ctx context.Context, key string, place int) <-chan testkit.Result[redlock.Lock] {
	t.Helper()
	waits := testkit.InBackground(func() (redlock.Lock, error) { return c.Acquire(ctx, key, ttl) })
	testkit.Await(t, "in line", func() bool { return c.Stats().InLine == place })
	return waits
}

// locked is the lock that a call has in the end.
func locked(t *testing.T, call <-chan testkit.Result[redlock.Lock]) redlock.Lock {
	t.Helper()
	got := testkit.Get(t, call)
	require.NoError(t, got.Err)
	return got.Value
}

// submitAs runs an Op as another kind.
func submitAs(t *testing.T, c *redlock.Client, op *redlock.Op, kind redlock.OpKind) error {
	t.Helper()
	op.Kind = kind
	return cluster.Submit(t, c, op)
}

// sleeping starts masters and a client. Its machine is found to have slept, for so long, at the reading
// of its clock that left counts down to.
func sleeping(t *testing.T, n int, d time.Duration, change ...func(*redlock.Config)) (r *cluster.Cluster, left *atomic.Int64) {
	t.Helper()
	r, left = &cluster.Cluster{Servers: cluster.Start(t, n), Machine: cluster.NewMachine(t)}, new(atomic.Int64)
	r.Machine.Read = func() {
		if left.Add(-1) == 0 {
			r.Machine.Skip(d)
		}
	}
	r.Client = cluster.ConnectOn(t, r.Machine, fakeredis.Addrs(r.Servers), change...)
	return r, left
}
