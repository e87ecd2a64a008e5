// Package served proves that the front end is one Redis for its clients: however many use it, some order of their commands on
// one Redis explains every answer.
package served

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Exclusion counts what clients of one lock have seen that one Redis never shows.
type Exclusion struct {
	Grants, Overlaps, Missed atomic.Int64 // Missed: releases in time with the answer 0
	Failed                   atomic.Int64 // errors
}

// Exclude has clients acquire one lock by SET NX PX, work for 2 ms, and release it by DEL in time, for so long.
func Exclude(ctx context.Context, addr string, clients int, long time.Duration) (*Exclusion, error) {
	var seen Exclusion
	var holders atomic.Int32
	var all sync.WaitGroup
	ctx, cancel := context.WithTimeout(ctx, long)
	defer cancel()
	errs := make(chan error, clients)
	for i := range clients {
		c, err := Dial(addr)
		if err != nil {
			return nil, err
		}
		defer c.Close()
		all.Go(func() {
			for ctx.Err() == nil {
				switch reply, err := c.Do("SET", "lock", fmt.Sprint("client", i), "NX", "PX", "30000"); {
				case err != nil:
					errs <- err
					return
				case strings.HasPrefix(reply, "-"):
					seen.Failed.Add(1)
					continue
				case reply != "+OK":
					time.Sleep(200 * time.Microsecond)
					continue
				}
				seen.Grants.Add(1)
				if holders.Add(1) > 1 {
					seen.Overlaps.Add(1)
				}
				time.Sleep(2 * time.Millisecond)
				holders.Add(-1)
				switch reply, err := c.Do("DEL", "lock"); {
				case err != nil:
					errs <- err
					return
				case strings.HasPrefix(reply, "-"):
					seen.Failed.Add(1)
				case reply != ":1":
					seen.Missed.Add(1)
				}
			}
		})
	}
	all.Wait()
	select {
	case err := <-errs:
		return &seen, err
	default:
		return &seen, nil
	}
}
