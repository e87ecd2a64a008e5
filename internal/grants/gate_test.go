package grants

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestGate: as many operations are in as are answered well within their time, in the order of their
// arrival; one that gives up takes no room.
func TestGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gate
		var mu sync.Mutex
		var order []int
		inside, most := 0, 0
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		call := func(ctx context.Context, i int) {
			leave, err := g.enter(ctx)
			if err != nil {
				return
			}
			mu.Lock()
			if i >= 0 {
				order = append(order, i)
			}
			inside++
			most = max(most, inside)
			takes := time.Duration(inside) * time.Millisecond // the nodes do a thousand a second
			mu.Unlock()
			time.Sleep(takes)
			mu.Lock()
			inside--
			mu.Unlock()
			leave()
		}
		for i := range 5000 {
			if i%7 == 6 {
				go call(ctx, -1)
			} else {
				go call(t.Context(), i)
			}
			synctest.Wait()
			if i == 2500 {
				cancel()
			}
		}
		synctest.Wait()
		mu.Lock()
		require.LessOrEqual(t, most, startRoom+8) // it grows while all are quick
		mu.Unlock()
		time.Sleep(2 * time.Second)
		mu.Lock()
		require.LessOrEqual(t, inside, 2*minRoom)
		mu.Unlock()
		time.Sleep(time.Hour)
		mu.Lock()
		defer mu.Unlock()
		g.mu.Lock()
		defer g.mu.Unlock()
		latest := 0
		for _, i := range order {
			require.Greater(t, i, latest-maxRoom) // those that are let in at one moment are in no order
			latest = max(latest, i)
		}
		require.Zero(t, inside)
		require.Zero(t, g.inside)
		require.Empty(t, g.line)
	})
}
