package main

import (
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/server/frontend"
	"github.com/redlock-go/redlock/internal/test/embedded"
	"github.com/redlock-go/redlock/internal/test/testkit"
)

// TestMetrics: one page has the counts of the client and those of the front end.
func TestMetrics(t *testing.T) {
	masters, err := embedded.Start(1)
	require.NoError(t, err)
	defer masters.Close()
	client, err := redlock.New(redlock.Config{Nodes: masters.Nodes(), DialTimeout: testkit.Patience})
	require.NoError(t, err)
	defer client.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	o := &operators{client: client, front: frontend.New(frontend.Config{Client: client}), name: "host", began: time.Now()}
	stop := o.serve(l)
	defer func() { require.NoError(t, stop()) }()
	reply, err := http.Get("http://" + l.Addr().String() + "/metrics")
	require.NoError(t, err)
	page, err := io.ReadAll(reply.Body)
	require.NoError(t, err)
	require.NoError(t, reply.Body.Close())
	require.Contains(t, string(page), "\nredlock_locks_held 0\n")
	require.Contains(t, string(page), `name="host"`)
	require.Contains(t, string(page), "\nredlock_ready{redlock_group=\"0\"} 1\n")
	ready := func() (int, string) {
		reply, err := http.Get("http://" + l.Addr().String() + "/ready")
		require.NoError(t, err)
		defer reply.Body.Close()
		text, err := io.ReadAll(reply.Body)
		require.NoError(t, err)
		return reply.StatusCode, string(text)
	}
	status, text := ready()
	require.Equal(t, 200, status, text)
	masters.Kill(0)
	testkit.Await(t, "it is not ready", func() bool { status, text = ready(); return status == 503 })
	require.Contains(t, text, "no quorum (1 of 1 nodes failed")
	o.leaves = func() bool { return true }
	_, text = ready()
	require.Equal(t, "stopping: the server was told to end\n", text)
	require.Contains(t, string(page), "\nredlock_frontend_connections 0\n")
}
