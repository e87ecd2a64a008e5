package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/bench/harness"
	"github.com/redlock-go/redlock/bench/proxy"
	"github.com/redlock-go/redlock/bench/result"
	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/resp"
)

func TestMain(m *testing.M) {
	proxy.ServeIfProxy()
	os.Exit(m.Run())
}

// exchange asks all nodes once, as a caller with this number, and returns when a majority has answered.
type exchange func(caller int) error

// TestExchanges measures what it costs to ask five nodes and hear a majority: by package conn, by the engine of locks (half
// of a TryAcquire and its Release), and by clients of one node each with a goroutine for a request. REDLOCK_FIGURES names
// the nodes. REDLOCK_CALLERS (1,8,64,512), REDLOCK_WAYS and REDLOCK_RTT say how. The way 64 by Use sends commands in batches
// of 64. It prints medians of interleaved rounds.
func TestExchanges(t *testing.T) {
	list := os.Getenv("REDLOCK_FIGURES")
	if list == "" {
		t.Skip("needs REDLOCK_FIGURES")
	}
	addrs := strings.Split(list, ",")
	if text := os.Getenv("REDLOCK_RTT"); text != "" {
		rtt, err := time.ParseDuration(text)
		require.NoError(t, err)
		p, err := proxy.Start(addrs)
		require.NoError(t, err)
		defer p.Close()
		for node := range addrs {
			require.NoError(t, p.Delay(node, rtt, 0))
		}
		addrs = p.Addrs
	}
	ways := map[string]exchange{"conn.Do": byConn(t, addrs), "64 by Use": byUse(t, addrs), "engine": byEngine(t, addrs), "go-redis": byGoRedis(t, addrs), "redigo": byRedigo(t, addrs)}
	order := strings.Split(cmp.Or(os.Getenv("REDLOCK_WAYS"), "conn.Do,engine,go-redis,redigo"), ",")
	const round, rounds = 500 * time.Millisecond, 7
	for callers := range strings.SplitSeq(cmp.Or(os.Getenv("REDLOCK_CALLERS"), "1,8,64,512"), ",") {
		n, err := strconv.Atoi(callers)
		require.NoError(t, err)
		seen := map[string][]figure{}
		for range rounds {
			for _, name := range order {
				seen[name] = append(seen[name], measure(t, n, round, ways[name]))
			}
		}
		first := median(seen[order[0]], figure.rate)
		for _, name := range order {
			of := seen[name]
			t.Logf("%4d callers  %-9s  %8.0f exchanges/s (%.2f of the first)  %6.2f us CPU  %6.2f allocations  %5.0f goroutines", n, name,
				median(of, figure.rate), median(of, figure.rate)/first, median(of, figure.cpu), median(of, figure.allocs), median(of, figure.goroutines))
		}
	}
}

// figure is one round of one way.
type figure struct {
	exchanges int64
	long, ran time.Duration
	mallocs   uint64
	routines  int
}

func (f figure) rate() float64       { return float64(f.exchanges) / f.long.Seconds() }
func (f figure) cpu() float64        { return f.ran.Seconds() * 1e6 / float64(f.exchanges) }
func (f figure) goroutines() float64 { return float64(f.routines) }
func (f figure) allocs() float64     { return float64(f.mallocs) / float64(f.exchanges) }

func median(all []figure, of func(figure) float64) float64 {
	var values []float64
	for _, f := range all {
		values = append(values, of(f))
	}
	slices.Sort(values)
	return result.Median(values)
}

func measure(t *testing.T, callers int, long time.Duration, ask exchange) (f figure) {
	t.Helper()
	var stop atomic.Bool
	var done, failed atomic.Int64
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			for !stop.Load() {
				if ask(i) != nil {
					failed.Add(1)
				}
				done.Add(1)
			}
		})
	}
	time.Sleep(long / 5)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began, cpu, had := time.Now(), harness.CPUTime(), done.Load()
	time.Sleep(long)
	f = figure{exchanges: done.Load() - had, long: time.Since(began), ran: harness.CPUTime() - cpu}
	f.routines = runtime.NumGoroutine()
	runtime.ReadMemStats(&after)
	f.mallocs = after.Mallocs - before.Mallocs
	stop.Store(true)
	all.Wait()
	require.Zero(t, failed.Load())
	return f
}

const mostCallers = 512

func keyOf(caller int) string { return fmt.Sprint("exchange:", caller) }

func openNodes(t *testing.T, addrs []string) *conn.Nodes {
	t.Helper()
	addresses, err := conn.ParseAddresses(addrs)
	require.NoError(t, err)
	nodes, err := conn.Open(conn.Config{Addresses: addresses})
	require.NoError(t, err)
	t.Cleanup(nodes.Close)
	nodes.Await(t.Context())
	return nodes
}

func byConn(t *testing.T, addrs []string) exchange {
	nodes := openNodes(t, addrs)
	commands := make([][]byte, mostCallers)
	for i := range commands {
		commands[i] = resp.AppendCommand(nil, "SET", keyOf(i), "value", "PX", "10000")
	}
	majority := len(addrs)/2 + 1
	return func(caller int) (err error) {
		heard := 0
		for _, reply := range nodes.Do(context.Background(), commands[caller]) {
			if reply.Err != nil {
				err = reply.Err
			} else if heard++; heard == majority {
				return nil
			}
		}
		return err
	}
}

// mine is a batch of 64 commands of a caller, used again and again.
type mine struct {
	conn.Batch
	heard int
	done  chan struct{}
}

func (m *mine) Reply(int, int, *resp.Value) error { m.heard++; return nil }
func (m *mine) Fail(int, int, error)              {}
func (m *mine) Done()                             { m.done <- struct{}{} }

// byUse counts each command of a batch as an exchange.
func byUse(t *testing.T, addrs []string) exchange {
	const commands = 64
	nodes := openNodes(t, addrs)
	all := make([]mine, mostCallers)
	for i := range all {
		m := &all[i]
		m.done, m.Owner = make(chan struct{}, 1), m
		for range commands {
			m.Append("SET", keyOf(i), "value", "PX", "10000")
		}
	}
	var left [mostCallers]int
	return func(caller int) error {
		if left[caller]--; left[caller] >= 0 {
			return nil
		}
		left[caller] = commands - 1
		nodes.Use(func(f *conn.Fleet) { f.Send(&all[caller].Batch) })
		<-all[caller].done
		return nil
	}
}

func byEngine(t *testing.T, addrs []string) exchange {
	client, err := redlock.New(redlock.Config{Nodes: addrs})
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	require.NoError(t, client.ReadyAll(t.Context()))
	held := make([]redlock.Lock, mostCallers)
	keys := make([]string, mostCallers)
	for i := range keys {
		keys[i] = "lock:" + keyOf(i)
	}
	return func(caller int) (err error) {
		if l := held[caller]; l != (redlock.Lock{}) {
			held[caller] = redlock.Lock{}
			return l.Release(context.Background())
		}
		held[caller], err = client.TryAcquire(context.Background(), keys[caller], 10*time.Second)
		return err
	}
}

// byMany asks each node by a goroutine, and waits for a majority.
func byMany(nodes int, ask func(node int, key string) error) exchange {
	keys := make([]string, mostCallers)
	for i := range keys {
		keys[i] = keyOf(i)
	}
	return func(caller int) (err error) {
		answers := make(chan error, nodes)
		for node := range nodes {
			go func() { answers <- ask(node, keys[caller]) }()
		}
		heard := 0
		for range nodes {
			if e := <-answers; e != nil {
				err = e
			} else if heard++; heard == nodes/2+1 {
				return nil
			}
		}
		return err
	}
}

func byGoRedis(t *testing.T, addrs []string) exchange {
	clients := make([]*goredis.Client, len(addrs))
	for i, addr := range addrs {
		clients[i] = goRedis(t, addr)
	}
	return byMany(len(addrs), func(node int, key string) error {
		return clients[node].Set(context.Background(), key, "value", 10*time.Second).Err()
	})
}

func byRedigo(t *testing.T, addrs []string) exchange {
	pools := make([]*redis.Pool, len(addrs))
	for i, addr := range addrs {
		pools[i] = &redis.Pool{MaxIdle: mostCallers, Dial: func() (redis.Conn, error) { return redis.Dial("tcp", addr) }}
		t.Cleanup(func() { _ = pools[i].Close() })
	}
	return byMany(len(addrs), func(node int, key string) error {
		c := pools[node].Get()
		defer c.Close()
		_, err := c.Do("SET", key, "value", "PX", "10000")
		return err
	})
}
