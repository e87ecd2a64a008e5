package served_test

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/bench/served"
	"github.com/redlock-go/redlock/internal/server/frontend"
	"github.com/redlock-go/redlock/internal/test/embedded"
	"github.com/redlock-go/redlock/internal/test/realredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
)

// serve starts a front end of masters, and returns its address.
func serve(t *testing.T, nodes []string) string {
	client, err := redlock.New(redlock.Config{Nodes: nodes, NodeTimeout: 500 * time.Millisecond})
	require.NoError(t, err)
	front := frontend.New(frontend.Config{Client: client, MaxTTL: redlock.MaxTTL})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ended := testkit.Start(func() error { return front.Serve(l) })
	t.Cleanup(func() {
		front.Stop(t.Context())
		<-ended
		_ = client.Close()
	})
	return l.Addr().String()
}

// TestExclusion: clients of SET NX and DEL never hold a lock beside each other, and each release in time has released it.
func TestExclusion(t *testing.T) {
	long, runs := time.Second, 1
	if testkit.Long() {
		long, runs = 20*time.Second, 8
	}
	for _, masters := range []string{"embedded", "real"} {
		t.Run(masters, func(t *testing.T) {
			var nodes []string
			if masters == "embedded" {
				all, err := embedded.Start(3)
				require.NoError(t, err)
				defer all.Close()
				nodes = all.Nodes()
			} else {
				for range 5 {
					nodes = append(nodes, realredis.Start(t, realredis.Options{}).Addr())
				}
			}
			addr := serve(t, nodes)
			for run := range runs {
				for _, clients := range []int{4, 8, 16} {
					seen, err := served.Exclude(t.Context(), addr, clients, long)
					require.NoError(t, err)
					t.Logf("run %d, %d clients: %d grants, %d overlaps, %d releases that answered 0, %d errors",
						run, clients, seen.Grants.Load(), seen.Overlaps.Load(), seen.Missed.Load(), seen.Failed.Load())
					require.Zero(t, seen.Overlaps.Load()+seen.Missed.Load()+seen.Failed.Load())
					require.Positive(t, seen.Grants.Load())
				}
			}
		})
	}
}
