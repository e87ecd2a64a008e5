package main

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/server/frontend"
	"github.com/redlock-go/redlock/internal/test/embedded"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// TestMetrics: one page has the counts of the client and of the front end.
func TestMetrics(t *testing.T) {
	masters, client := tried(t, 1)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	front := frontend.New(frontend.Config{Client: client, Name: "front"})
	o := &operators{client: client, front: front, name: "host", began: time.Now()}
	stop := o.serve(l)
	defer func() { require.NoError(t, stop()) }()
	get := func(path string) (int, string) {
		reply, err := http.Get("http://" + l.Addr().String() + path)
		require.NoError(t, err)
		defer reply.Body.Close()
		text, err := io.ReadAll(reply.Body)
		require.NoError(t, err)
		return reply.StatusCode, string(text)
	}
	_, page := get("/metrics")
	for _, want := range []string{"\nredlock_locks_held 0\n", `name="host"`, "\nredlock_ready{redlock_group=\"0\"} 1\n", "\nredlock_frontend_connections 0\n"} {
		require.Contains(t, page, want)
	}
	clients, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go front.Serve(clients)
	defer front.Stop(t.Context())
	c, err := net.Dial("tcp", clients.Addr().String())
	require.NoError(t, err)
	defer c.Close()
	_, _ = c.Write([]byte("CLIENT SETNAME worker\r\nSET job secret NX PX 60000\r\n"))
	_, err = io.ReadFull(c, make([]byte, len("+OK\r\n+OK\r\n")))
	require.NoError(t, err)
	_, page = get("/?keys")
	require.Contains(t, page, "<td>job</td><td data-name=\"holder:\">worker/"+c.LocalAddr().String()+"@front</td>")
	require.NotContains(t, page, "secret")
	_, page = get("/")
	require.NotContains(t, page, "job</td>")

	status, text := get("/ready")
	require.Equal(t, 200, status, text)
	masters.Kill(0)
	testkit.Await(t, "it is not ready", func() bool { status, text = get("/ready"); return status == 503 })
	require.Contains(t, text, "no quorum (1 of 1 nodes failed")
	o.leaves = func() bool { return true }
	_, text = get("/ready")
	require.Equal(t, "stopping: the server was told to end\n", text)
}

// TestProbesBesideIdle: probes are answered beside a thousand connections with no words, or half a word.
func TestProbesBesideIdle(t *testing.T) {
	_, client := tried(t, 1)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	o := &operators{client: client, front: frontend.New(frontend.Config{Client: client}), began: time.Now()}
	stop := o.serve(l)
	defer func() { require.NoError(t, stop()) }()
	for i := range 1000 {
		idle, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		defer idle.Close()
		if i%2 == 0 {
			_, _ = idle.Write([]byte("GET /me"))
		}
		if i%20 == 0 {
			probe := &http.Client{Transport: &http.Transport{}} // on a connection of its own
			reply, err := probe.Get("http://" + l.Addr().String() + "/ready")
			require.NoError(t, err, i)
			require.Equal(t, 200, reply.StatusCode)
			_ = reply.Body.Close()
			probe.CloseIdleConnections()
		}
	}
}

// TestRefusedNode: a node that is something else is a case for an alert, a node that is down is not.
func TestRefusedNode(t *testing.T) {
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	masters, err := embedded.Start(3)
	require.NoError(t, err)
	defer masters.Close()
	nodes := append(masters.Nodes(), other.Listener.Addr().String())
	client := cluster.Connect(t, nodes)
	masters.Kill(0)
	o := &operators{client: client, began: time.Now()}
	refused := func(node, value string) string {
		return "redlock_frontend_node_refused{node=\"" + node + "\",redlock_group=\"0\"} " + value + "\n"
	}
	var page strings.Builder
	testkit.Await(t, "the node is refused", func() bool {
		page.Reset()
		o.writeOwn(&page)
		return strings.Contains(page.String(), refused(nodes[3], "1")) && !client.Stats().Nodes[0].Up
	})
	require.Contains(t, page.String(), refused(client.Stats().Nodes[0].Addr, "0"))
	require.Contains(t, page.String(), refused(client.Stats().Nodes[1].Addr, "0"))
}

// tried is embedded masters and a client of them.
func tried(t *testing.T, n int, hooks ...redlock.Hooks) (embedded.Masters, *redlock.Client) {
	masters, err := embedded.Start(n)
	require.NoError(t, err)
	t.Cleanup(func() { _ = masters.Close() })
	return masters, cluster.Connect(t, masters.Nodes(), func(c *redlock.Config) { c.Hooks = append(hooks, redlock.Hooks{})[0] })
}
