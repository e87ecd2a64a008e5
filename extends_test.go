package redlock_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestExtendAgainstExtend: of two at once the nodes keep the TTL that came
// last. Remaining must not count on the other.
func TestExtendAgainstExtend(t *testing.T) {
	onBothPaths(t, func(t *testing.T, portable bool) {
		r := newRig(t, 3, portably(portable))
		for range 500 {
			l := mustAcquire(t, r.Client, "k", ttl)
			var wg sync.WaitGroup
			for _, d := range []time.Duration{ttl, time.Minute, 2 * ttl, 2 * time.Minute} {
				wg.Add(1)
				go func() {
					defer wg.Done()
					if err := l.Extend(t.Context(), d); err != nil {
						t.Error(err)
					}
				}()
			}
			wg.Wait()
			for _, s := range r.servers {
				await(t, "all", func() bool { return int(s.Count("EVALSHA"))%5 == 4 })
				require.Less(t, l.Remaining(), s.TTL("k"))
			}
			require.NoError(t, l.Release(t.Context()))
			for _, s := range r.servers {
				await(t, "all", func() bool { return int(s.Count("EVALSHA"))%5 == 0 })
			}
		}
	})
}
