package main

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// TestPage: an operator sees the nodes down and why, the locks held, the rate, and the last errors with their cause.
// The page shows no password, no key unless asked for, and nothing from elsewhere.
func TestPage(t *testing.T) {
	var p operators
	masters, client := tried(t, 3, p.hooks())
	p.client = client
	still := &operators{client: client} // no hook adds to it
	showOf := func(p *operators, url string) string {
		w := httptest.NewRecorder()
		p.show(w, httptest.NewRequest("GET", url, nil))
		require.Contains(t, w.Header().Get("Content-Security-Policy"), "default-src 'none'")
		return w.Body.String()
	}
	show := func(url string) string { return showOf(&p, url) }
	testkit.Await(t, "all nodes vote", func() bool {
		return strings.Contains(show("/"), "Locks can be acquired</span>: 3 of 3 nodes vote")
	})
	require.Contains(t, show("/"), "none since the start")

	began := time.Now()
	p.sample(began, client.Stats(), 0, 0)
	lock := testkit.Must(client.Acquire(t.Context(), "secret-customer", time.Hour))(t)
	kept, stop := lock.KeepAlive(t.Context())
	defer stop()
	for i := range 2 * maxSamples {
		p.sample(began.Add(time.Duration(1+i)*sampleEvery), client.Stats(), uint64(61_725*(i+1)), uint64(50*(i+1)))
	}
	require.Len(t, p.samples, maxSamples)
	require.Contains(t, show("/"), "held<b>1</b>")
	require.Contains(t, show("/"), "commands, per second<b>12,345</b>")
	require.Contains(t, show("/"), "failed, per second<b>10</b>")

	masters.Kill(0)
	masters.Kill(1)
	testkit.Await(t, "no quorum", func() bool { return cluster.IsReady(client) != nil })
	for range 2 {
		_, err := client.TryAcquire(t.Context(), "secret-customer", time.Hour)
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
	}
	require.Error(t, lock.Extend(t.Context(), time.Hour))
	require.NoError(t, kept.Err())
	for range 2 * maxTroubles {
		still.record("node down", "", context.Canceled)
		still.record("node down", "", context.DeadlineExceeded)
	}
	require.Len(t, still.troubles, maxTroubles)
	still.record("node down", "", context.DeadlineExceeded)
	for range 3 {
		still.record("acquire", "", fmt.Errorf("no vote for %v", time.Since(began)))
	}
	require.Equal(t, 3, still.troubles[maxTroubles-1].Times)
	require.Contains(t, showOf(still, "/"), "2 times")

	testkit.Await(t, "the hooks", func() bool { return strings.Contains(show("/?keys"), "acquire</span> secret-customer") })
	down := show("/")
	require.Contains(t, down, "No lock can be acquired</span>: 1 of 3 nodes vote")
	require.Contains(t, down, `<span class="bad">down</span>: conn: `)
	for _, never := range []string{"secret-customer", "http://", "https://", "<script", "<img", "NaN", "<no value>"} {
		require.NotContains(t, down, never)
	}
}
