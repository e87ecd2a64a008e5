package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/base/knobs"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// TestBurstOnASlowNetwork: more operations than a node may owe replies wait in the queue. The
// connection is not closed for too quick sending. There is one node, so none lags behind a quorum
// of the others.
func TestBurstOnASlowNetwork(t *testing.T) {
	const limit, operations = 2048, 8192
	for _, kind := range []redlock.OpKind{redlock.OpAcquire, redlock.OpRelease} {
		cluster.Run(t, kind.String(), func(t *testing.T) {
			r := cluster.New(t, 1, func(c *redlock.Config) { knobs.Of(c).MaxInFlight = limit })
			for _, s := range r.Servers {
				s.Delay(15 * time.Millisecond)
				if kind == redlock.OpRelease {
					allowLocks(s) // each release is repeated alone
				}
			}
			for range 10 { // the client measures the round trip
				live(t, r.Client, "lock:a")
			}
			done := make(chan struct{}, operations)
			for i := range operations {
				op := releaseOp(fmt.Sprint("evil:", i), func(*redlock.Op) { done <- struct{}{} })
				if kind == redlock.OpAcquire {
					op.Kind, op.Key, op.TTL = kind, fmt.Append(nil, "lock:", i), ttl
				}
				require.NoError(t, r.Submit(op))
			}
			for range operations {
				testkit.Get(t, done)
			}
			for _, n := range cluster.Settle(t, r.Client).Nodes {
				require.NoError(t, n.Err)
				require.EqualValues(t, 1, n.Connects)
			}
		})
	}
}
