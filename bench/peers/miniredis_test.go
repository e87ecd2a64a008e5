package main

import (
	"context"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
)

// TestMiniredis: three of the fakes that most Go programs are tested with make a fleet. They
// have no INFO server, no commands to compare a token natively, and do not push: so the
// quarantine is off, scripts extend and release, and waiters ask again and again.
func TestMiniredis(t *testing.T) {
	var nodes []string
	var fakes []*miniredis.Miniredis
	for range 3 {
		fakes = append(fakes, miniredis.RunT(t))
		nodes = append(nodes, fakes[len(fakes)-1].Addr())
	}
	connect := func() *redlock.Client {
		c, err := redlock.New(redlock.Config{Nodes: nodes, NodeTimeout: patience})
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	ours, theirs := connect(), connect()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, ours.Ready(ctx))

	l, err := ours.TryAcquire(ctx, "k", time.Minute)
	require.NoError(t, err)
	_, err = theirs.TryAcquire(ctx, "k", time.Minute)
	require.Equal(t, redlock.ErrTaken, err)
	require.NoError(t, l.Extend(ctx, ttl))
	require.Greater(t, l.Remaining(), ttl/2)
	for _, f := range fakes { // the other's attempt may have been first at one of them: the next extend repairs it
		for f.TTL("k") <= ttl/2 {
			require.NoError(t, l.Extend(ctx, ttl))
		}
	}

	waiting, granted := make(chan error, 1), make(chan redlock.Lock, 1)
	go func() {
		l, err := theirs.Acquire(ctx, "k", ttl)
		granted <- l
		waiting <- err
	}()
	require.Eventually(t, func() bool { return theirs.Stats().Acquire.Denied > 1 }, patience, time.Millisecond)
	require.NoError(t, l.Release(ctx))
	l = <-granted
	require.NoError(t, <-waiting)
	require.NoError(t, l.Release(ctx))
	require.ErrorIs(t, l.Release(ctx), redlock.ErrNotHeld)
}
