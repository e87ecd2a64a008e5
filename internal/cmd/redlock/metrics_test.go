package main

import (
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/server/frontend"
	"github.com/redlock-go/redlock/internal/test/embedded"
)

// TestMetrics: one page has the counts of the client and those of the front end.
func TestMetrics(t *testing.T) {
	masters, err := embedded.Start(1)
	require.NoError(t, err)
	defer masters.Close()
	client, err := redlock.New(redlock.Config{Nodes: masters.Nodes()})
	require.NoError(t, err)
	defer client.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	stop := serveMetrics(l, frontend.New(frontend.Config{Client: client}), client, new(page))
	defer func() { require.NoError(t, stop()) }()
	reply, err := http.Get("http://" + l.Addr().String() + "/metrics")
	require.NoError(t, err)
	page, err := io.ReadAll(reply.Body)
	require.NoError(t, err)
	require.NoError(t, reply.Body.Close())
	require.Contains(t, string(page), "\nredlock_locks_held 0\n")
	require.Contains(t, string(page), "\nredlock_frontend_connections 0\n")
}
