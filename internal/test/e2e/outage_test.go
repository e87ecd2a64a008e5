package e2e

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// persist submits acquires again and again from Done until they are granted. The channel receives
// once for each of them.
func persist(t *testing.T, c *redlock.Client, operations int) (won <-chan error) {
	var over atomic.Bool
	t.Cleanup(func() { over.Store(true) }) // before Close is called
	results := make(chan error, operations)
	for i := range operations {
		op := &redlock.Op{Kind: redlock.OpAcquire, Key: fmt.Append(nil, i), TTL: ttl}
		op.Done = func(op *redlock.Op) {
			if op.Err() == nil {
				results <- nil
			} else if !over.Load() {
				if err := c.Submit(op); err != nil {
					results <- err
				}
			}
		}
		require.NoError(t, testkit.Try(t, "Submit", func() error { return c.Submit(op) }))
	}
	return results
}

// TestOutageEnds: operations submitted again from Done, without a quorum, do not keep the client
// from reaching the nodes again. Submit and Stats return promptly during the outage, and the
// connection to the healthy node stays.
func TestOutageEnds(t *testing.T) {
	for away := 3; away >= 2; away-- {
		t.Run(fmt.Sprint(away, " of 3 away"), func(t *testing.T) {
			testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
				r := cluster.New(t, 3, cluster.DefaultTimeouts, patientStall, cluster.Portable(portable))
				r.Servers[3-away:].Down()
				cluster.AwaitNodesUp(t, r.Client, 3-away)

				const operations = 4
				won := persist(t, r.Client, operations)
				for began := time.Now(); time.Since(began) < 100*time.Millisecond; {
					cluster.Stats(t, r.Client)
				}
				r.Heal(t)
				for range operations {
					require.NoError(t, testkit.Outcome(t, "an operation after the outage", won))
				}
				if away == 2 {
					require.EqualValues(t, 1, cluster.Stats(t, r.Client).Nodes[0].Connects, "the healthy node was cut off")
				}
			})
		})
	}
}
