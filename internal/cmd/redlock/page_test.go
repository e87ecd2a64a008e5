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
	"github.com/redlock-go/redlock/internal/test/embedded"
	"github.com/redlock-go/redlock/internal/test/testkit"
)

// TestPage: an operator sees which node is down and why, the locks held, the rate, and the last
// errors with their cause; no password, no key unless asked for, and nothing from elsewhere.
func TestPage(t *testing.T) {
	masters, err := embedded.Start(3)
	require.NoError(t, err)
	defer masters.Close()
	var p operators
	client, err := redlock.New(redlock.Config{Nodes: masters.Nodes(), NodeTimeout: testkit.Patience, DialTimeout: testkit.Patience, StallTimeout: testkit.Patience, Hooks: p.hooks()})
	require.NoError(t, err)
	defer client.Close()
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
	lock, err := client.Acquire(t.Context(), "secret-customer", time.Hour)
	require.NoError(t, err)
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
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Eventually(t, func() bool { return client.Ready(ctx) != nil }, time.Minute, time.Millisecond)
	for range 2 {
		_, err = client.TryAcquire(t.Context(), "secret-customer", time.Hour)
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
