package redlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/fakeredis"
)

// TestCutOffBehindAReply: a node that answers one command and closes before the
// next is noticed at once, also where both are seen in one look.
func TestCutOffBehindAReply(t *testing.T) {
	onBothPaths(t, func(t *testing.T, portable bool) {
		r := newRig(t, 1, portably(portable))
		for range 60 {
			var ops [3]redlock.Op
			done := make(chan error, 2)
			for i := range ops {
				ops[i] = redlock.Op{Kind: redlock.OpAcquire, Key: []byte{'a' + byte(i)}, TTL: ttl, Done: func(op *redlock.Op) { done <- op.Err() }}
			}
			ops[0].Done = func(*redlock.Op) { // so that both go out as one batch
				_ = r.Submit(&ops[1])
				_ = r.Submit(&ops[2])
			}
			r.servers[0].Inject(fakeredis.Fault{On: "SET", Do: fakeredis.HangUp, Skip: 2, Times: 1})
			start := time.Now()
			require.NoError(t, r.Submit(&ops[0]))
			require.NoError(t, get(t, done))
			require.ErrorIs(t, get(t, done), redlock.ErrNoQuorum)
			require.Less(t, time.Since(start), time.Second)
			r.servers[0].Flush()
			await(t, "up", func() bool {
				l, err := r.TryAcquire(t.Context(), "up", ttl)
				return err == nil && l.Release(t.Context()) == nil
			})
		}
	})
}
