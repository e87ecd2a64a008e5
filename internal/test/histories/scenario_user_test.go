package histories

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock"
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
