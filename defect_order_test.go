package redlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
)

// TestDefectReleaseKeepsItsPlace: a release whose context ends while it waits is
// sent before the acquire of the same key that waits behind it.
func TestDefectReleaseKeepsItsPlace(t *testing.T) {
	onBothPaths(t, func(t *testing.T, portable bool) {
		for name, endsBefore := range map[string]bool{"ended before": true, "ends in the queue": false} {
			t.Run(name, func(t *testing.T) {
				r := newBoundRig(t, startN(t, 3), portably(portable))
				held := mustAcquire(t, r.Client, "k", ttl)
				awaitSoon(t, bound, "on all nodes", func() bool { return r.holders("k") == 3 })
				token := held.Token()
				unclogged := r.clog(t)
				waiting := statsOf(t, r.Client).Waiting
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if endsBefore {
					cancel()
				}
				released := start(func() error { return held.Release(ctx) })
				awaitSoon(t, bound, "the release waits", func() bool { return statsOf(t, r.Client).Waiting > waiting })
				if endsBefore {
					require.Equal(t, context.Canceled, soon(t, "Release", released))
				}
				acquired := submitted(t, r.Client, noted("k"))
				if !endsBefore {
					cancel()
					require.Equal(t, context.Canceled, soon(t, "Release", released))
				}
				r.heal(t)
				unclogged()
				require.NoError(t, soon(t, "the acquire", acquired), "it came before the release")
				quiet(t, r.Client)
				for i, e := range r.heard {
					releases, sets := e.all("EVALSHA", token), e.all("SET", "k")
					require.Len(t, releases, 1, "node %d", i)
					require.Len(t, sets, 2)
					require.False(t, sets[1].at.Before(releases[0].at), "node %d heard the acquire first", i)
				}
			})
		}
	})
}

// TestDefectReleaseIsSentOnce: one that is on its way when its context has ended
// is not sent again.
func TestDefectReleaseIsSentOnce(t *testing.T) {
	onBothPaths(t, func(t *testing.T, portable bool) {
		for name, endsBefore := range map[string]bool{"ended before": true, "ends on the way": false} {
			t.Run(name, func(t *testing.T) {
				r := newBoundRig(t, startN(t, 3), portably(portable))
				for range 5 {
					held := mustAcquire(t, r.Client, "k", ttl)
					awaitSoon(t, bound, "on all nodes", func() bool { return r.holders("k") == 3 })
					quiet(t, r.Client)
					token := held.Token()
					for _, s := range r.servers {
						s.Mute()
					}
					ctx, cancel := context.WithCancel(t.Context())
					if endsBefore {
						cancel()
					}
					released := start(func() error { return held.Release(ctx) })
					r.awaitAll(t, 1, "EVALSHA", token)
					time.AfterFunc(time.Millisecond, cancel)
					require.Equal(t, context.Canceled, soon(t, "Release", released))
					r.heal(t)
					require.NoError(t, soon(t, "an acquire behind it", submitted(t, r.Client, noted("k"))))
					release := &redlock.Op{Kind: redlock.OpRelease, Key: []byte("k")}
					for _, s := range r.servers {
						if v, ok := s.Get("k"); ok {
							copy(release.Token[:], v)
						}
					}
					require.NoError(t, soon(t, "its release", submitted(t, r.Client, release)))
					quiet(t, r.Client)
					for i, e := range r.heard {
						require.Len(t, e.all("EVALSHA", token), 1, "node %d heard the release twice", i)
					}
				}
			})
		}
	})
}
