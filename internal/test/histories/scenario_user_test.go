package histories

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/testkit"
)

// asleep is how long user code blocks.
const asleep = 30 * time.Second

// sleepy is a context whose methods block once it is tired.
type sleepy struct {
	context.Context
	tired atomic.Bool
}

func (c *sleepy) sleep() {
	if c.tired.Load() {
		time.Sleep(asleep)
	}
}

func (c *sleepy) Done() <-chan struct{} { c.sleep(); return c.Context.Done() }
func (c *sleepy) Err() error            { c.sleep(); return c.Context.Err() }
func (c *sleepy) Value(key any) any     { c.sleep(); return c.Context.Value(key) }

// users are scenarios of user code that blocks: a lock that is free and wanted waits for none of it.
var users = []scenario{
	// At no moment of its attempt is a caller given a lock that it would keep in its hook.
	{"passed on beside a hook that blocks", 3, func(s *stage) {
		step := 1
		if testkit.Race {
			step = 6
		}
		for i := 0; i < 60; i += step {
			var blocks atomic.Bool
			c := s.Client(func(c *redlock.Config) {
				c.Hooks.Attempt = func(a redlock.Attempt) {
					if a.Err != nil && blocks.CompareAndSwap(true, false) {
						time.Sleep(asleep)
					}
				}
			})
			s.Servers.Deny("CLIENT|TRACKING") // it polls
			key := fmt.Sprint("k", i)
			held := s.take(c, key, longTTL)
			first, next := s.wait(c, key, longTTL), s.wait(c, key, longTTL)
			blocks.Store(true)
			for blocks.Load() && first.waits() && c.Stats().InFlight == 0 {
				time.Sleep(20 * time.Microsecond) // until it asks
			}
			time.Sleep(time.Duration(i) * 10 * time.Microsecond)
			s.release(held)
			from := time.Now()
			select {
			case <-first.done:
				s.release(s.granted(first))
			case <-next.done:
				s.release(s.granted(next))
			}
			require.LessOrEqual(s.T, time.Since(from), 1100*time.Millisecond)
			require.NoError(s.T, c.Close())
			time.Sleep(asleep)
		}
	}},
	// The contexts of those in line are not asked.
	{"a context that blocks in line", 3, func(s *stage) {
		for i := range 8 {
			c := s.Client(func(c *redlock.Config) { c.NoHandOver = i%2 == 0 })
			key := fmt.Sprint("k", i)
			held := s.take(c, key, longTTL)
			parent, cancel := context.WithCancel(s.ctx)
			ctx, returns := &sleepy{Context: parent}, make(chan error, 1)
			go func() {
				var err error
				var l redlock.Lock
				if i/2%2 == 0 {
					l, err = c.Acquire(ctx, key, longTTL)
				} else {
					l, err = c.AcquireAny(ctx, longTTL, key)
				}
				l.ReleaseAsync()
				returns <- err
			}()
			time.Sleep(100 * time.Millisecond)
			next := s.wait(c, key, longTTL)
			ctx.tired.Store(true)
			if i/4 == 0 {
				cancel()
				time.Sleep(time.Millisecond)
			}
			s.release(held)
			s.inTurn(1100*time.Millisecond, next)
			cancel()
			<-returns
		}
	}},
}
