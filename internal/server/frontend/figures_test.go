package frontend_test

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"net"
	"os"
	"runtime"
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
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
	"github.com/redlock-go/redlock/resp"
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
	f, floor := &front{addr: addr}, &front{addr: os.Getenv("REDLOCK_FLOOR")}
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
			func(key string) func() error { return f.pair(t, key) },
			func(key string) func() error { return floor.pair(t, key) },
		}
		if floor.addr == "" {
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
func (f *front) pair(t *testing.T, key string) func() error {
	c := f.dial(t)
	name := strings.TrimPrefix(c.call("SCRIPT", "LOAD", release), "$")
	set := command("SET", key, "0123456789abcdef", "NX", "PX", "10000")
	del := command("EVALSHA", name, "1", key, "0123456789abcdef")
	ask := f.exchangeOn(c.conn, string(set))
	free := f.exchangeOn(c.conn, string(del))
	return func() error {
		if err := ask(); err != nil {
			return err
		}
		return free()
	}
}

// exchangeOn writes a command and reads a reply of one line.
func (f *front) exchangeOn(conn net.Conn, request string) func() error {
	in, out := bufio.NewReaderSize(conn, 512), []byte(request)
	return func() error {
		if _, err := conn.Write(out); err != nil {
			return err
		}
		line, err := in.ReadSlice('\n')
		if err == nil && (line[0] == '-' || line[0] == '$') {
			err = errors.New(strings.TrimSpace(string(line)))
		}
		return err
	}
}

func command(args ...string) []byte {
	out := resp.AppendArray(nil, len(args))
	for _, arg := range args {
		out = resp.AppendBulkString(out, arg)
	}
	return out
}

// TestIdleConnections: an idle connection costs little memory.
func TestIdleConnections(t *testing.T) {
	f := startOn(t, cluster.New(t, 1))
	n := 500
	before := used()
	for range n {
		c := f.dial(t)
		c.expect("PING => +PONG") // its client side is in this process, too
		c.buf, c.d = nil, resp.Decoder{}
	}
	each := (used() - before) / uint64(n)
	t.Logf("%d bytes for both ends of a connection", each)
	require.Less(t, each, uint64(10_000))
}

// used is the bytes of the heap and of stacks in use.
func used() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}
