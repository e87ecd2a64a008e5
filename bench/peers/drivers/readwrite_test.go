package drivers

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/bench/crowd"
	"github.com/redlock-go/redlock/internal/test/realredis"
)

// TestReadWrite: readers are there together, beside no writer; those who are refused wait, until a release or the end of
// a TTL.
func TestReadWrite(t *testing.T) {
	nodes := []string{realredis.StartN(t, 1)[0].Addr()}
	for name, open := range map[string]crowd.Open{"redlock": crowd.Ours, "hash": Hash, "counter": Counter} {
		t.Run(name, func(t *testing.T) {
			library, err := open(t.Context(), nodes)
			require.NoError(t, err)
			defer library.Close()
			callers := make([]crowd.Caller, 4)
			for i := range callers {
				callers[i] = library.Caller()
			}
			one, two, writer, other := callers[0], callers[1], callers[2], callers[3]
			acquire := func(c crowd.Caller, want crowd.Want, ttl time.Duration) error {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				return c.Acquire(ctx, name, ttl, want)
			}
			// waits has a caller wait until then is done.
			waits := func(c crowd.Caller, want crowd.Want, then func() error) {
				got := make(chan error, 1)
				go func() { got <- acquire(c, want, patience) }()
				select {
				case err := <-got:
					require.Fail(t, "did not wait", "%v", err)
				case <-time.After(50 * time.Millisecond):
				}
				require.NoError(t, then())
				require.NoError(t, <-got)
			}
			require.NoError(t, acquire(one, crowd.Read, patience))
			require.NoError(t, acquire(two, crowd.Read, patience))
			require.NoError(t, one.Release(t.Context()))
			waits(writer, crowd.Write, func() error { return two.Release(t.Context()) })
			waits(one, crowd.Read, func() error { return writer.Release(t.Context()) })
			waits(writer, crowd.Write, func() error { return one.Release(t.Context()) })
			waits(other, crowd.Write, func() error { return writer.Release(t.Context()) })
			require.NoError(t, other.Release(t.Context()))
			require.NoError(t, acquire(one, crowd.Read, time.Second)) // it is not released
			waits(writer, crowd.Write, func() error { return nil })
			require.NoError(t, writer.Release(t.Context()))
		})
	}
}
