package redlock_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
)

// TestDefectOutageEnds: operations that are submitted again from their Done,
// as long as there is no quorum, do not keep the client from getting one.
// Submit and Stats return at once meanwhile, and the connection to a node that
// is well stays.
func TestDefectOutageEnds(t *testing.T) {
	for away := 3; away >= 2; away-- {
		t.Run(fmt.Sprint(away, " of 3 away"), func(t *testing.T) {
			onBothPaths(t, func(t *testing.T, portable bool) {
				r := newBoundRig(t, startN(t, 3), impatient, portably(portable))
				for _, s := range r.servers[3-away:] {
					s.Down()
				}
				awaitUpNodes(t, r.Client, 3-away)

				const operations = 4
				var over atomic.Bool
				t.Cleanup(func() { over.Store(true) }) // it ends before Close is called
				won := make(chan error, operations)
				for i := range operations {
					op := &redlock.Op{Kind: redlock.OpAcquire, Key: fmt.Append(nil, i), TTL: ttl}
					op.Done = func(op *redlock.Op) {
						if op.Err() == nil {
							won <- nil
						} else if !over.Load() {
							if err := r.Submit(op); err != nil {
								won <- err
							}
						}
					}
					accepted := start(func() error { return r.Submit(op) })
					require.NoError(t, before(t, time.Second, "Submit during the outage", accepted))
				}
				for began := time.Now(); time.Since(began) < 200*time.Millisecond; {
					looked := time.Now()
					statsOf(t, r.Client)
					require.Less(t, time.Since(looked), time.Second, "Stats waits")
				}
				r.heal(t)
				healed := time.Now()
				for range operations {
					require.NoError(t, before(t, 2*time.Second, "the client does not recover", won))
				}
				require.Less(t, time.Since(healed), 2*time.Second)
				if away == 2 {
					require.EqualValues(t, 1, statsOf(t, r.Client).Nodes[0].Connects, "the well node was cut off")
				}
			})
		})
	}
}

// TestDefectOutageWithoutHealing: while the outage lasts, other callers hear of
// it, and the client can be closed.
func TestDefectOutageWithoutHealing(t *testing.T) {
	r := newBoundRig(t, startN(t, 3), impatient)
	for _, s := range r.servers {
		s.Down()
	}
	awaitUpNodes(t, r.Client, 0)
	var over atomic.Bool
	t.Cleanup(func() { over.Store(true) })
	op := &redlock.Op{Kind: redlock.OpAcquire, Key: []byte("k"), TTL: ttl}
	op.Done = func(op *redlock.Op) {
		if !over.Load() && op.Err() != redlock.ErrClosed {
			_ = r.Submit(op)
		}
	}
	require.NoError(t, soon(t, "Submit", start(func() error { return r.Submit(op) })))
	for i := range 5 {
		err := soon(t, "TryAcquire", start(func() error {
			_, err := r.TryAcquire(context.Background(), fmt.Sprint("other ", i), ttl)
			return err
		}))
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
	}
	require.NoError(t, soon(t, "Close", start(r.Close)))
}

// TestDefectBlockedDone: a Done that blocks holds up nothing but itself.
func TestDefectBlockedDone(t *testing.T) {
	onBothPaths(t, func(t *testing.T, portable bool) {
		r := newBoundRig(t, startN(t, 3), portably(portable))
		release := make(chan struct{})
		t.Cleanup(func() { close(release) })
		entered := make(chan error, 1)
		blocked := &redlock.Op{Kind: redlock.OpAcquire, Key: []byte("blocked"), TTL: ttl}
		blocked.Done = func(op *redlock.Op) {
			entered <- op.Err()
			<-release
		}
		go func() { _ = r.Submit(blocked) }() // today it may be Submit that blocks
		require.NoError(t, soon(t, "the Done that blocks", entered))

		for i := range 20 {
			pair(t, r.Client, fmt.Sprint("call ", i))
			op := &redlock.Op{Kind: redlock.OpAcquire, Key: fmt.Append(nil, "op ", i), TTL: ttl}
			require.NoError(t, soon(t, "another Done", submitted(t, r.Client, op)))
			require.Len(t, statsOf(t, r.Client).Nodes, 3)
		}
	})
}

// TestDefectBlockedDoneInABatch: the other operations of the same batch are
// completed too.
func TestDefectBlockedDoneInABatch(t *testing.T) {
	r := newBoundRig(t, startN(t, 3))
	unclogged := r.clog(t)
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	blocked := &redlock.Op{Kind: redlock.OpAcquire, Key: []byte("blocked"), TTL: ttl}
	blocked.Done = func(*redlock.Op) { <-release }
	require.NoError(t, r.Submit(blocked))
	var others []<-chan error
	for i := range 10 {
		op := &redlock.Op{Kind: redlock.OpAcquire, Key: fmt.Append(nil, i), TTL: ttl}
		others = append(others, submitted(t, r.Client, op))
	}
	r.heal(t)
	for _, done := range others {
		require.NoError(t, soon(t, "another Done of the batch", done))
	}
	unclogged()
	pair(t, r.Client, "behind")
}

// awaitUpNodes waits until so many nodes are up.
func awaitUpNodes(t *testing.T, c *redlock.Client, want int) {
	t.Helper()
	awaitSoon(t, bound, fmt.Sprint(want, " nodes up"), func() bool {
		up := 0
		for _, n := range statsOf(t, c).Nodes {
			if n.Up {
				up++
			}
		}
		return up == want
	})
}
