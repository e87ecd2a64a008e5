package crowd

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"
)

const childEnv = "REDLOCK_BENCH_CROWD"

// order is the task of a process.
type order struct {
	Library, Crowd, Key string
	Nodes               []string
	For, TTL            time.Duration
}

// figures are the waits of a process, or of a crowd in one round. A wait that the end has cut counts with the others.
type figures struct {
	Grants         int
	Rate           float64 // grants a second
	P50, P99, Most time.Duration
	Failed         string // the first error that is not the end
}

// serve is one process of a crowd.
func serve(libraries map[string]Open, text string) error {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	c, err := parse(o.Crowd)
	if err != nil {
		return err
	}
	library, err := libraries[o.Library](context.Background(), o.Nodes)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	_, _ = fmt.Scanln()
	ctx, cancel := context.WithTimeout(context.Background(), o.For)
	defer cancel()
	var done sync.WaitGroup
	callers := make([]caller, c.callers)
	for i := range callers {
		done.Go(func() { callers[i].work(ctx, library.Caller(), &c, o.Key+strconv.Itoa(i%c.keys), o.TTL) })
	}
	done.Wait()
	var f figures
	var waits []time.Duration
	for _, w := range callers {
		f.Grants += w.grants
		waits = append(waits, w.waits...)
		if f.Failed == "" && w.failed != nil {
			f.Failed = w.failed.Error()
		}
	}
	slices.Sort(waits)
	if len(waits) > 0 {
		f.P50, f.P99, f.Most = waits[len(waits)/2], waits[len(waits)*99/100], waits[len(waits)-1]
	}
	f.Rate = float64(f.Grants) / o.For.Seconds()
	if err := json.NewEncoder(os.Stdout).Encode(f); err != nil {
		return err
	}
	return library.Close()
}

// caller is what one has seen.
type caller struct {
	grants int
	waits  []time.Duration
	failed error
}

// work acquires, holds and releases until ctx ends. It comes again at once.
func (w *caller) work(ctx context.Context, by Caller, c *crowd, key string, ttl time.Duration) {
	if c.crash {
		ttl = c.hold
	}
	for ctx.Err() == nil {
		began := time.Now()
		err := by.Acquire(ctx, key, ttl, c.want)
		w.waits = append(w.waits, time.Since(began))
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return
		default:
			if w.failed == nil {
				w.failed = err
			}
			time.Sleep(time.Millisecond)
			continue
		}
		w.grants++
		if c.crash {
			<-ctx.Done()
			return
		}
		if c.hold > 0 {
			time.Sleep(c.hold/2 + rand.N(c.hold/2+1))
		}
		err = by.Release(context.WithoutCancel(ctx))
		if err != nil && w.failed == nil {
			w.failed = err
		}
	}
}
