package redlock_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
)

// TestScriptFlush: nodes that forget the scripts are given them again, and the
// operation goes on as if nothing had happened.
func TestScriptFlush(t *testing.T) {
	onBothPaths(t, func(t *testing.T, portable bool) {
		r := newRig(t, 3, portably(portable))
		flush := func() {
			for _, s := range r.servers {
				s.FlushScripts()
			}
		}
		for range 20 {
			flush()
			l := mustAcquire(t, r.Client, "k", ttl)
			flush()
			require.NoError(t, l.Extend(t.Context(), 2*ttl))
			await(t, "extended everywhere", func() bool {
				for _, s := range r.servers {
					if s.TTL("k") <= ttl {
						return false
					}
				}
				return true
			})
			flush()
			require.NoError(t, l.Release(t.Context()))
			r.awaitEmpty(t)
			require.Equal(t, redlock.ErrNotHeld, l.Release(t.Context()))
		}
	})
}

// TestScriptFlushUnderLoad: it happens all the time, to one node after the
// other, while many lock, extend and unlock.
func TestScriptFlushUnderLoad(t *testing.T) {
	onBothPaths(t, func(t *testing.T, portable bool) {
		r := newRigOf(t, startN(t, 5), portably(portable))
		var wg sync.WaitGroup
		for g := range 32 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for i := range 30 {
					l, err := r.TryAcquire(context.Background(), fmt.Sprint(g, "/", i%4), ttl)
					if err != nil {
						t.Errorf("acquire: %v", err)
						return
					}
					if err := l.Extend(context.Background(), ttl); err != nil {
						t.Errorf("extend: %v", err)
					}
					if err := l.Release(context.Background()); err != nil {
						t.Errorf("release: %v", err)
					}
				}
			}()
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			wg.Wait()
		}()
		for i := 0; ; i++ {
			s := r.servers[i%5]
			s.FlushScripts()
			loads := s.Count("SCRIPT")
			select {
			case <-done:
				r.awaitEmpty(t)
				return
			default:
			}
			// Somebody has noticed, or there is nobody left to.
			for s.Count("SCRIPT") == loads && !isClosed(done) {
				s.Conns()
			}
		}
	})
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// TestScriptsForbidden: a node that will not run or load them fails the vote,
// and says why.
func TestScriptsForbidden(t *testing.T) {
	r := newRig(t, 3)
	l := mustAcquire(t, r.Client, "k", ttl)
	for _, s := range r.servers[:2] {
		s.Deny("EVALSHA")
	}
	require.ErrorContains(t, l.Extend(t.Context(), ttl), "NOPERM")
	r.servers[0].Allow()
	require.NoError(t, l.Extend(t.Context(), ttl))

	for _, s := range r.servers {
		s.Allow()
		s.FlushScripts()
		s.Deny("SCRIPT|LOAD")
	}
	require.ErrorContains(t, l.Release(t.Context()), "server keeps forgetting the script")
	for _, s := range r.servers {
		s.Allow()
	}
	require.NoError(t, l.Release(t.Context()))
}
