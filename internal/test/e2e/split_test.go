package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// TestWhatEndsSplits: a call that ends while it pauses between rounds of split votes names the
// cause of its end, and says that the lock is taken only after all of its rounds.
func TestWhatEndsSplits(t *testing.T) {
	const rounds = 5
	for name, c := range map[string]struct {
		end  func(r *cluster.Cluster, cancel func())
		want error
	}{
		"context": {func(_ *cluster.Cluster, cancel func()) { cancel() }, context.Canceled},
		"Close":   {func(r *cluster.Cluster, _ func()) { require.NoError(t, r.Close()) }, redlock.ErrClosed},
	} {
		cluster.Run(t, name, func(t *testing.T) {
			early := 0
			for after := time.Millisecond; ; after += 7 * time.Millisecond {
				r := cluster.New(t, 3)
				r.Servers.Delay(10 * time.Millisecond)
				for _, s := range r.Servers[1:] { // the first grants it, each time
					s.Set("k", foreign, time.Hour)
				}
				ctx, cancel := context.WithCancel(t.Context())
				tried := testkit.InBackground(func() (redlock.Lock, error) { return r.TryAcquire(ctx, "k", ttl) })
				time.Sleep(after)
				over := len(tried) > 0
				c.end(r, cancel)
				err := testkit.Get(t, tried).Err
				if cancel(); over {
					require.Equal(t, redlock.ErrTaken, err)
					require.EqualValues(t, rounds, r.Servers[1].Count("SET"))
					break
				}
				if err != redlock.ErrTaken || r.Servers[1].Count("SET") < rounds {
					require.Equal(t, c.want, err, "after %v and %d rounds", after, r.Servers[1].Count("SET"))
					early++
				}
			}
			require.Greater(t, early, 5)
		})
	}
}
