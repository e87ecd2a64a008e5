package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/realredis"
	"github.com/redlock-go/redlock/internal/testkit"
	"github.com/redlock-go/redlock/internal/testkit/cluster"
)

// turns are those that goroutines have had with a lock, and how long one has waited.
type turns struct {
	grants  atomic.Int64
	longest time.Duration // of one goroutine
}

// take loops until ctx ends: a grant, a section, a release. What the end cuts off counts
// as a wait.
func (u *turns) take(ctx context.Context, section time.Duration, acquire func(context.Context) (redlock.Lock, error)) {
	for ctx.Err() == nil {
		from := time.Now()
		l, err := acquire(ctx)
		for ; errors.Is(err, redlock.ErrNoQuorum) && ctx.Err() == nil; l, err = acquire(ctx) {
		}
		u.longest = max(u.longest, time.Since(from))
		if err == nil {
			u.grants.Add(1)
			time.Sleep(section)
			for errors.Is(l.Release(context.Background()), redlock.ErrNoQuorum) { // the machine is busy
			}
		}
	}
}

// line has n goroutines of a client loop over a key.
func line(ctx context.Context, c *redlock.Client, key string, n int, section time.Duration) (u *turns, ended *sync.WaitGroup) {
	u, ended = new(turns), new(sync.WaitGroup)
	for range n {
		ended.Add(1)
		go func() {
			defer ended.Done()
			own := turns{}
			own.take(ctx, section, func(ctx context.Context) (redlock.Lock, error) { return c.Acquire(ctx, key, usualTTL) })
			u.grants.Add(own.grants.Load())
		}()
	}
	return u, ended
}

// TestRealBesideALine: a line of callers that takes a lock without end leaves turns to those
// who are not in its queue: they cannot be, or they do not wait in line.
func TestRealBesideALine(t *testing.T) {
	const section, longest = time.Millisecond, 3 * time.Second
	// The bound of a short run, which shares the machine with other tests, finds a guest that
	// gets nothing; the long one measures.
	window, bound := 2*longest, 2*longest-time.Second
	if testkit.Long() {
		window, bound = 15*time.Second, longest
	}
	servers := realredis.StartN(t, 5, realredis.Options{Users: []string{leastUser + strings.Join(least.privileges, " ")}})
	nodes := cluster.RealAddrs(servers)
	type guest func(ctx context.Context) (redlock.Lock, error)
	acquires := func(c *redlock.Client, key string) guest {
		return func(ctx context.Context) (redlock.Lock, error) { return c.Acquire(ctx, key, usualTTL) }
	}
	sets := func(c *redlock.Client, keys ...string) guest {
		return func(ctx context.Context) (redlock.Lock, error) { return c.AcquireAll(ctx, usualTTL, keys...) }
	}
	polls := func(c *redlock.Client, key string) guest {
		return func(ctx context.Context) (l redlock.Lock, err error) {
			for err = ctx.Err(); err == nil; err = ctx.Err() {
				if l, err = c.TryAcquire(ctx, key, usualTTL); err == nil {
					return l, nil
				}
				time.Sleep(5 * time.Millisecond)
			}
			return l, err
		}
	}
	// beside measures a guest of a line of client c for key, until ctx ends.
	beside := func(name, key string, nodes []string, prepare func(t *testing.T, ctx context.Context, c *redlock.Client, key string) guest) {
		t.Run(name, func(t *testing.T) {
			if !testkit.Long() {
				t.Parallel()
			}
			c := cluster.Connect(t, nodes, usual)
			ctx, cancel := context.WithTimeout(t.Context(), window)
			defer cancel()
			acquire := prepare(t, ctx, c, key)
			hosts, ended := line(ctx, c, key, 4, section)
			var u turns
			u.take(ctx, section, acquire)
			testkit.Join(t, ended)
			t.Logf("%d grants in %v, longest wait %v; the line beside it %d", u.grants.Load(), window, u.longest.Round(time.Millisecond), hosts.grants.Load())
			require.Less(t, u.longest, bound, "longest wait")
			require.Greater(t, hosts.grants.Load(), u.grants.Load()/10, "it is not the line that starves now")
		})
	}
	for name, prepare := range map[string]func(t *testing.T, ctx context.Context, c *redlock.Client, key string) guest{
		"set of one key, same client": func(_ *testing.T, _ context.Context, c *redlock.Client, key string) guest { return sets(c, key) },
		"set of one key": func(t *testing.T, _ context.Context, _ *redlock.Client, key string) guest {
			return sets(cluster.Connect(t, nodes, usual), key)
		},
		"set of the keys of two lines": func(t *testing.T, ctx context.Context, _ *redlock.Client, key string) guest {
			_, ended := line(ctx, cluster.Connect(t, nodes, usual), key+" too", 4, section)
			t.Cleanup(ended.Wait)
			return sets(cluster.Connect(t, nodes, usual), key, key+" too")
		},
		"user without tracking": func(t *testing.T, _ context.Context, _ *redlock.Client, key string) guest {
			return acquires(cluster.Connect(t, lockers(servers), usual), key)
		},
		"polls, same client": func(_ *testing.T, _ context.Context, c *redlock.Client, key string) guest { return polls(c, key) },
		"polls": func(t *testing.T, _ context.Context, _ *redlock.Client, key string) guest {
			return polls(cluster.Connect(t, nodes, usual), key)
		},
	} {
		beside(name, "lock:"+name, nodes, prepare)
	}
	var others []string
	for _, node := range nodes {
		others = append(others, strings.Replace(node, "127.0.0.1", "localhost", 1))
	}
	for i := range 3 { // the queues of a key may lie on the same node
		beside(fmt.Sprint("nodes by other names ", i), fmt.Sprint("lock:", i), nodes, func(t *testing.T, _ context.Context, _ *redlock.Client, key string) guest {
			return acquires(cluster.Connect(t, others, usual), key)
		})
	}
	// The same key in five databases of the same nodes, so that its queue is on one of those
	// that are cut off.
	for i, addr := range nodes {
		var databases []string
		for _, node := range nodes {
			databases = append(databases, fmt.Sprintf("redis://%s/%d", node, 1+i))
		}
		beside(fmt.Sprint("cut off from node ", i), "lock", databases, func(t *testing.T, _ context.Context, _ *redlock.Client, key string) guest {
			net := newNetwork()
			net.cut(addr)
			return acquires(cluster.Connect(t, databases, usual, net.use), key)
		})
	}
}
