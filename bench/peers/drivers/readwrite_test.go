package drivers

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/bench/harness"
	"github.com/redlock-go/redlock/bench/ours"
	"github.com/redlock-go/redlock/internal/test/realredis"
)

// TestReadWrite: readers are there together, beside no writer; those who are refused wait, until a release or the end of
// a TTL.
func TestReadWrite(t *testing.T) {
	nodes := []string{realredis.StartN(t, 1)[0].Addr()}
	for _, d := range []harness.Sharer{ours.Driver{}, Hash{}, Counter{}} {
		t.Run(d.Name(), func(t *testing.T) {
			cfg := harness.Config{Nodes: nodes, TTL: patience, Scenario: harness.Contended, Concurrency: 2, Patient: true}
			writer, other := workers(t, d, cfg)
			cfg.Share = true
			one, two := workers(t, d, cfg)
			cfg.TTL = time.Second
			dead, _ := workers(t, d, cfg)
			// waits has a worker wait until then is done.
			waits := func(w harness.Worker, then func()) {
				got := make(chan error, 1)
				go func() { got <- obtain(t, d, w, d.Name()) }()
				select {
				case err := <-got:
					require.Fail(t, "did not wait", "%v", err)
				case <-time.After(50 * time.Millisecond):
				}
				then()
				require.NoError(t, <-got)
			}
			acquire(t, one, d.Name())
			acquire(t, two, d.Name())
			release(t, d, one)
			waits(writer, func() { release(t, d, two) })
			waits(one, func() { release(t, d, writer) })
			waits(writer, func() { release(t, d, one) })
			waits(other, func() { release(t, d, writer) })
			release(t, d, other)
			acquire(t, dead, d.Name()) // it is not released
			waits(writer, func() {})
			release(t, d, writer)
		})
	}
}
