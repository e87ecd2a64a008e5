// Command shared measures how long callers wait who share a lock, and those beside them who want it for themselves.
//
//	go run ./bench/shared -nodes host:port,… [-d 10s] 2x64:read:20ms 1x1:write:1ms
//
// Each argument is a crowd: processes, callers in each, what they want, and for how long they have it (from half of
// that on). They come at once again.
//
//	read    AcquireShared
//	write   Acquire
//	poll    TryAcquire after pauses of 50 to 250 ms, as clients do that stand in no queue
//	crash   AcquireShared without a release, with a TTL of so long
//
// With a number of keys behind it (1x64:read:0s:64) the callers have different ones.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/bench/child"
	"github.com/redlock-go/redlock/bench/place"
)

const (
	ttl      = 20 * time.Second
	childEnv = "REDLOCK_BENCH_SHARED"
)

// crowd is the callers of one process.
type crowd struct {
	processes, callers int
	what               string
	hold               time.Duration
	keys               int
}

func parse(text string) (c crowd, err error) {
	words := append(strings.Split(text, ":"), "1")
	if len(words) < 4 {
		return c, fmt.Errorf("%q: want processes x callers : what : hold", text)
	}
	c.what = words[1]
	_, err = fmt.Sscanf(words[0]+" "+words[3], "%dx%d %d", &c.processes, &c.callers, &c.keys)
	if err == nil {
		c.hold, err = time.ParseDuration(words[2])
	}
	return c, err
}

func main() {
	child.Serve(childEnv, serve)
	nodes := flag.String("nodes", "127.0.0.1:6379", "host:port of the masters")
	d := flag.Duration("d", 10*time.Second, "how long")
	together := flag.Bool("together", false, "use all processors, and not a half of them")
	flag.Parse()
	if *together {
		place.Together()
	} else if err := place.Separate(); err != nil {
		log.Print(err)
	}
	fmt.Println(place.Describe(true))
	if err := run(*nodes, *d, flag.Args()); err != nil {
		log.Fatal(err)
	}
}

func run(nodes string, d time.Duration, crowds []string) error {
	var done sync.WaitGroup
	key := fmt.Sprint("shared", os.Getpid())
	for _, text := range crowds {
		c, err := parse(text)
		if err != nil {
			return err
		}
		for range c.processes {
			p, _, err := child.Start(childEnv, fmt.Sprint(text, " ", nodes, " ", d, " ", key), 1)
			if err != nil {
				return err
			}
			defer p.Close()
			done.Go(func() {
				answer, err := p.Ask("begin")
				fmt.Printf("%-20s %s\n", text, answer)
				if err != nil {
					fmt.Fprintln(os.Stderr, err)
				}
			})
		}
	}
	done.Wait()
	return nil
}

// serve is one process of a crowd.
func serve(value string) error {
	args := strings.Fields(value)
	w, err := parse(args[0])
	if err != nil {
		return err
	}
	d, err := time.ParseDuration(args[2])
	if err != nil {
		return err
	}
	c, err := redlock.New(redlock.Config{Nodes: strings.Split(args[1], ",")})
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.Ready(context.Background()); err != nil {
		return err
	}
	fmt.Println("ready")
	fmt.Scanln()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	var done sync.WaitGroup
	waits := make([][]time.Duration, w.callers)
	for i := range w.callers {
		done.Go(func() { waits[i] = w.work(ctx, c, args[3]+strconv.Itoa(i%w.keys)) })
	}
	done.Wait()
	all := slices.Concat(waits...)
	if len(all) == 0 {
		fmt.Println("never")
		return nil
	}
	slices.Sort(all)
	at := func(p int) time.Duration { return all[len(all)*p/1000].Round(time.Microsecond * 10) }
	fmt.Printf("%.0f/s, waits: p50 %v, p99 %v, p99.9 %v, longest %v\n", float64(len(all))/d.Seconds(), at(500), at(990), at(999), all[len(all)-1].Round(time.Microsecond*10))
	return nil
}

// work is one caller. It returns how long it has waited, each time.
func (w *crowd) work(ctx context.Context, c *redlock.Client, key string) (waits []time.Duration) {
	acquire, ttl := c.Acquire, ttl
	switch w.what {
	case "crash":
		ttl = w.hold
		fallthrough
	case "read":
		acquire = c.AcquireShared
	case "poll":
		acquire = func(ctx context.Context, key string, ttl time.Duration) (redlock.Lock, error) {
			for {
				l, err := c.TryAcquire(ctx, key, ttl)
				if !errors.Is(err, redlock.ErrTaken) {
					return l, err
				}
				time.Sleep(50*time.Millisecond + rand.N(200*time.Millisecond))
			}
		}
	}
	for ctx.Err() == nil {
		began := time.Now()
		l, err := acquire(ctx, key, ttl)
		waits = append(waits, time.Since(began))
		if err != nil {
			return waits
		}
		if w.hold > 0 {
			time.Sleep(w.hold/2 + rand.N(w.hold/2+1))
		}
		if w.what != "crash" {
			_ = l.Release(context.Background())
		}
	}
	return waits
}
