// Package served measures what the front end costs beside the library.
package served

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/redcon"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/testkit"
)

// TestFigures measures the cost of the front end, with REDLOCK_FIGURES set: the address of a
// running one, in REDLOCK_NODES its nodes, and in REDLOCK_FLOOR the address of TestFloorServer in
// another process. It prints medians of interleaved rounds. REDLOCK_CONNECTIONS is a list, else 1
// and 512.
func TestFigures(t *testing.T) {
	addr := os.Getenv("REDLOCK_FIGURES")
	if addr == "" {
		t.Skip("needs REDLOCK_FIGURES")
	}
	floor := os.Getenv("REDLOCK_FLOOR")
	lib, err := redlock.New(redlock.Config{Nodes: strings.Split(os.Getenv("REDLOCK_NODES"), ",")})
	require.NoError(t, err)
	defer lib.Close()
	const round, rounds = 2500 * time.Millisecond, 5
	for n := range strings.SplitSeq(cmp.Or(os.Getenv("REDLOCK_CONNECTIONS"), "1,512"), ",") {
		n, err := strconv.Atoi(n)
		require.NoError(t, err)
		ways := []func(key string) func() error{
			func(key string) func() error {
				return func() error {
					lock, err := lib.TryAcquire(context.Background(), key, 10*time.Second)
					if err != nil {
						return err
					}
					return lock.Release(context.Background())
				}
			},
			func(key string) func() error { return pair(t, addr, key) },
			func(key string) func() error { return pair(t, floor, key) },
		}
		if floor == "" {
			ways = ways[:2]
		}
		measured := make([][]float64, 3)
		for range rounds {
			for i, way := range ways {
				measured[i] = append(measured[i], pairs(n, round, way))
			}
		}
		median := func(all []float64) float64 {
			slices.Sort(all)
			return append(all, 0)[len(all)/2]
		}
		d, h, p := median(measured[0]), median(measured[1]), median(measured[2])
		t.Logf("%d: library %.0f pairs/s, front end %.0f: %.2f of it, and %.2f of the floor, %.0f; a command takes %.0f us more than the library's, %.0f us more than the floor's",
			n, d, h, h/d, h/p, p, 1e6*float64(n)/2*(1/h-1/d), 1e6*float64(n)/2*(1/h-1/p))
	}
}

// TestFloorServer serves, at the address in REDLOCK_SERVE_FLOOR, replies to the commands of
// TestFigures by redcon, and does nothing else: the best for a front end that asks no nodes. It
// does not end.
func TestFloorServer(t *testing.T) {
	addr := os.Getenv("REDLOCK_SERVE_FLOOR")
	if addr == "" {
		t.Skip("needs REDLOCK_SERVE_FLOOR")
	}
	require.NoError(t, redcon.ListenAndServe(addr, func(conn redcon.Conn, cmd redcon.Command) {
		switch string(cmd.Args[0]) {
		case "SET":
			conn.WriteString("OK")
		case "SCRIPT":
			conn.WriteBulkString(strings.Repeat("0", 40))
		default:
			conn.WriteInt(1)
		}
	}, nil, nil))
}

// pairs is the number of calls of n callers in a second.
func pairs(n int, long time.Duration, prepare func(key string) func() error) float64 {
	var stop atomic.Bool
	var done atomic.Int64
	var callers sync.WaitGroup
	calls := make([]func() error, n)
	for i := range calls {
		calls[i] = prepare("figures:" + strconv.Itoa(i))
	}
	began := time.Now()
	for _, call := range calls {
		callers.Go(func() {
			for !stop.Load() {
				if call() == nil {
					done.Add(1)
				}
			}
		})
	}
	time.Sleep(long)
	stop.Store(true)
	callers.Wait()
	return float64(done.Load()) / time.Since(began).Seconds()
}

// pair is a SET NX PX and its release by a script, on a new connection.
func pair(t *testing.T, addr, key string) func() error {
	const release = `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) else return 0 end`
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	in := bufio.NewReaderSize(conn, 512)
	ask := func(request string) error {
		if _, err := conn.Write([]byte(request)); err != nil {
			return err
		}
		reply, err := in.ReadSlice('\n')
		if err == nil && (reply[0] == '-' || reply[0] == '$' && reply[1] == '-') {
			err = errors.New(strings.TrimSpace(string(reply)))
		}
		return err
	}
	err = ask(testkit.Encode("SCRIPT", "LOAD", release))
	require.NoError(t, err)
	name, err := in.ReadString('\n')
	require.NoError(t, err)
	set := testkit.Encode("SET", key, "0123456789abcdef", "NX", "PX", "10000")
	del := testkit.Encode("EVALSHA", strings.TrimSpace(name), "1", key, "0123456789abcdef")
	return func() error {
		if err := ask(set); err != nil {
			return err
		}
		return ask(del)
	}
}
