package gate

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestGate: an end waits for everything that has entered, also for work outside for a while, and for no late work.
// Several ends may wait. An end out of time, or without its caller, waits no longer.
func TestGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New()
		require.True(t, g.Wait(nil, nil), "none is inside")
		require.True(t, g.Admit())
		require.True(t, g.Admit())
		g.Shut()
		require.False(t, g.Admit())
		late, done := make(chan struct{}), make(chan struct{})
		ended := make(chan bool, 4)
		for range 2 {
			go func() { ended <- g.Wait(nil, nil) }()
		}
		g.Leave()
		go func() { ended <- g.Wait(late, nil) }()
		close(late)
		require.True(t, <-ended)
		go func() { ended <- g.Wait(nil, done) }()
		close(done)
		require.False(t, <-ended)
		g.Enter()
		g.Leave()
		time.Sleep(time.Second)
		require.Empty(t, ended)
		require.Equal(t, 1, g.Inside())
		g.Leave()
		require.True(t, <-ended)
		require.True(t, <-ended)
		require.Zero(t, g.Inside())
	})
}
