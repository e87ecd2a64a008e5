// Command permits measures semaphores: how soon a released permit reaches a waiter in another process, beside a lock, and
// how many permits a second 64 callers get.
//
//	go run ./bench/permits -nodes host:port,… handover
//	go run ./bench/permits -nodes host:port,… [-hold 1ms] [-processes 2] rate
//
// semaphore.mjs has the rate of redis-semaphore, on one server.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/bench/child"
	"github.com/redlock-go/redlock/bench/place"
)

const (
	waiters  = 64
	permits  = 8
	ttl      = 20 * time.Second
	childEnv = "REDLOCK_BENCH_PERMITS"
	settle   = 50 * time.Millisecond // until all waiters stand in line
)

// kinds is what is handed over: how many keys a waiter wants any of.
var kinds = map[string]int{"lock": 1, "permit": permits}

func main() {
	child.Serve(childEnv, serve)
	nodes := flag.String("nodes", "127.0.0.1:6379", "host:port of the masters")
	d := flag.Duration("d", 20*time.Second, "how long")
	hold := flag.Duration("hold", 0, "rate: work under a permit")
	processes := flag.Int("processes", 1, "rate: that share the callers")
	together := flag.Bool("together", false, "use all processors, and not a half of them")
	flag.Parse()
	if err := place.Choose(*together); err != nil {
		log.Print(err)
	}
	fmt.Println(place.Describe(true))
	var err error
	switch flag.Arg(0) {
	case "handover":
		err = handover(*nodes, *d)
	case "rate":
		err = rate(*nodes, *d, *hold, *processes)
	default:
		flag.Usage()
	}
	if err != nil {
		log.Fatal(err)
	}
}

func connect(nodes string) (*redlock.Client, error) {
	c, err := redlock.New(redlock.Config{Nodes: strings.Split(nodes, ",")})
	if err != nil {
		return nil, err
	}
	return c, c.Ready(context.Background())
}

// acquire waits for any of some keys.
func acquire(ctx context.Context, c *redlock.Client, keys []string) (redlock.Lock, error) {
	if len(keys) == 1 {
		return c.Acquire(ctx, keys[0], ttl)
	}
	return c.AcquireAny(ctx, ttl, keys...)
}

// handover measures locks and permits in turns.
func handover(nodes string, d time.Duration) error {
	c, err := connect(nodes)
	if err != nil {
		return err
	}
	defer c.Close()
	other, _, err := child.Start(childEnv, "handover "+nodes, 1)
	if err != nil {
		return err
	}
	defer other.Close()
	held, took := map[string]redlock.Lock{}, map[string][]time.Duration{}
	for end := time.Now().Add(d); time.Now().Before(end); {
		for kind, n := range kinds {
			name := fmt.Sprint(kind, len(took[kind])) // a new one: clients remember who wanted a key
			keys := redlock.Permits(name, n)
			for _, key := range keys {
				if held[key], err = c.Acquire(context.Background(), key, ttl); err != nil {
					return err
				}
			}
			if _, err := other.Ask(fmt.Sprint("wait ", name, " ", n)); err != nil {
				return err
			}
			key := keys[len(took[kind])%len(keys)]
			began := time.Now()
			if err := held[key].Release(context.Background()); err != nil {
				return err
			}
			answer, err := other.Ask("end")
			if err != nil {
				return err
			}
			at, err := strconv.ParseInt(answer, 10, 64)
			if err != nil {
				return err
			}
			took[kind] = append(took[kind], time.Unix(0, at).Sub(began))
			for _, k := range keys {
				if k != key {
					_ = held[k].Release(context.Background())
				}
			}
		}
	}
	for kind, all := range took {
		slices.Sort(all)
		fmt.Printf("%-6s %d hand-overs to one of %d in another process: p50 %v, p90 %v, p99 %v\n",
			kind, len(all), waiters, all[len(all)/2], all[len(all)*9/10], all[len(all)*99/100])
	}
	return nil
}

// serve is the other process. It answers when the first waiter had the lock, once all have left.
func serve(value string) error {
	what, rest, _ := strings.Cut(value, " ")
	if what == "rate" {
		return serveRate(rest)
	}
	c, err := connect(rest)
	if err != nil {
		return err
	}
	defer c.Close()
	fmt.Println("ready")
	for {
		var order, name string
		var n int
		if read, _ := fmt.Scanln(&order, &name, &n); read == 0 {
			return nil
		}
		ctx, cancel := context.WithCancel(context.Background())
		first, done := make(chan int64, waiters), sync.WaitGroup{}
		for range waiters {
			done.Go(func() {
				if l, err := acquire(ctx, c, redlock.Permits(name, n)); err == nil {
					first <- time.Now().UnixNano()
					<-ctx.Done()
					_ = l.Release(context.Background())
				}
			})
		}
		time.Sleep(settle)
		fmt.Println("waiting")
		at := <-first
		cancel()
		done.Wait()
		fmt.Scanln(&order)
		fmt.Println(at)
	}
}

// rate counts the permits of all callers.
func rate(nodes string, d, hold time.Duration, processes int) error {
	var all []*child.Process
	for range processes {
		p, _, err := child.Start(childEnv, fmt.Sprint("rate ", nodes, " ", d, " ", hold, " ", waiters/processes), 1)
		if err != nil {
			return err
		}
		defer p.Close()
		all = append(all, p)
	}
	var sum atomic.Int64
	var done sync.WaitGroup
	for _, p := range all {
		done.Go(func() {
			answer, err := p.Ask("begin")
			n, _ := strconv.ParseInt(answer, 10, 64)
			sum.Add(n)
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		})
	}
	done.Wait()
	fmt.Printf("%d masters, %d x %d callers, %d permits, held for %v: %.0f permits/s\n",
		len(strings.Split(nodes, ",")), processes, waiters/processes, permits, hold, float64(sum.Load())/d.Seconds())
	return nil
}

func serveRate(value string) error {
	args := strings.Fields(value)
	c, err := connect(args[0])
	if err != nil {
		return err
	}
	defer c.Close()
	d, _ := time.ParseDuration(args[1])
	hold, _ := time.ParseDuration(args[2])
	callers, _ := strconv.Atoi(args[3])
	fmt.Println("ready")
	fmt.Scanln()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	keys := redlock.Permits("permits", permits)
	var n atomic.Int64
	var done sync.WaitGroup
	for range callers {
		done.Go(func() {
			for ctx.Err() == nil {
				l, err := c.AcquireAny(ctx, ttl, keys...)
				if err != nil {
					return
				}
				n.Add(1)
				if hold > 0 {
					time.Sleep(hold)
				}
				_ = l.Release(context.Background())
			}
		})
	}
	done.Wait()
	fmt.Println(n.Load())
	return nil
}
