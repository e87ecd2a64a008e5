package histories

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/virtual"
)

// contend has processes of two callers each lock and release, and returns how often they had the
// lock once then is over.
func (s *stage) contend(processes int, section time.Duration, configure func(*redlock.Config), lock func(c *redlock.Client) (redlock.Lock, error), then func()) int64 {
	var all sync.WaitGroup
	var n atomic.Int64
	for range processes {
		c := s.Client(configure)
		require.NoError(s.T, c.Ready(s.ctx))
		for range 2 {
			all.Go(func() {
				for s.ctx.Err() == nil {
					l, err := lock(c)
					if err != nil {
						return
					}
					n.Add(1)
					time.Sleep(section)
					_ = l.Release(context.Background())
				}
			})
		}
	}
	then()
	n.Store(0)
	all.Wait()
	return n.Load()
}

// TestContendedMovingKey: a key that moves from one group to another has at least half of the
// grants of a set of two keys: to the nodes it is such a set.
func TestContendedMovingKey(t *testing.T) {
	moves, stays := "", ""
	for i := 0; moves == "" || stays == ""; i++ {
		key := fmt.Sprint("key", i)
		if client.Number(key, 2) == 1 {
			moves = key
		} else {
			stays = key
		}
	}
	for _, section := range []time.Duration{time.Millisecond, 20 * time.Millisecond} {
		t.Run(section.String(), func(t *testing.T) {
			d := min(4*time.Second, 500*section)
			if testkit.Long() {
				d = 40 * time.Second
			}
			grants := map[string]int64{}
			for name, f := range map[string]func(s *stage) (func(*redlock.Config), func(*redlock.Client) (redlock.Lock, error)){
				"a key": func(s *stage) (func(*redlock.Config), func(*redlock.Client) (redlock.Lock, error)) {
					return func(c *redlock.Config) { c.Nodes = s.Nodes[:3] }, func(c *redlock.Client) (redlock.Lock, error) { return c.Acquire(s.ctx, moves, longTTL) }
				},
				"a set of two keys": func(s *stage) (func(*redlock.Config), func(*redlock.Client) (redlock.Lock, error)) {
					return func(c *redlock.Config) { c.Nodes, c.Groups = nil, [][]string{s.Nodes[:3], s.Nodes[3:]} },
						func(c *redlock.Client) (redlock.Lock, error) { return c.AcquireAll(s.ctx, longTTL, stays, moves) }
				},
				"a key that moves": func(s *stage) (func(*redlock.Config), func(*redlock.Client) (redlock.Lock, error)) {
					return func(c *redlock.Config) {
						c.Nodes, c.Groups, c.NextGroups = nil, [][]string{s.Nodes[:3]}, [][]string{s.Nodes[:3], s.Nodes[3:]}
					}, func(c *redlock.Client) (redlock.Lock, error) { return c.Acquire(s.ctx, moves, longTTL) }
				},
			} {
				virtual.Run(t, 6, func(w *virtual.World) {
					ctx, cancel := context.WithTimeout(w.T.Context(), d*5/4)
					defer cancel()
					s := &stage{w, ctx}
					configure, lock := f(s)
					grants[name] = s.contend(4, section, configure, lock, func() { time.Sleep(d / 4) })
				})
			}
			t.Logf("grants in %v: %v", d, grants)
			require.GreaterOrEqual(t, 2*grants["a key that moves"], grants["a set of two keys"])
		})
	}
}
