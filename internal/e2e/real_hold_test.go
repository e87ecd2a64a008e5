//go:build linux

package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/realredis"
	"github.com/redlock-go/redlock/internal/testkit"
	"github.com/redlock-go/redlock/internal/testkit/cluster"
)

// A process of holders is this test binary with the addresses of the masters in holdersEnv.
// It writes a line for each moment at which a function has seen that its lock is held:
//
//	held key holder nanoseconds
//
// The nanoseconds are read before the context is asked. A context that has ended stays so:
// it was alive at that moment, although the process may have stood still between the two.
// So nothing is excepted: from the first line of a holder to its last the lock was held,
// and no two such times of one key may overlap.
const holdersEnv = "REDLOCK_TEST_HOLDERS"

// machineTime reads the clock that all processes of this machine share.
func machineTime() (nanoseconds int64) {
	var ts syscall.Timespec
	_, _, _ = syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, 1, uintptr(unsafe.Pointer(&ts)), 0) // CLOCK_MONOTONIC
	return ts.Nano()
}

// hold is what the function of a holder does for a while.
func hold(ctx context.Context, holder string, long time.Duration, keys ...string) error {
	for start := time.Now(); time.Since(start) < long; {
		now := machineTime()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		text := ""
		for _, key := range keys {
			text += fmt.Sprintf("held %s %s %d\n", key, holder, now)
		}
		_, _ = os.Stdout.WriteString(text)
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(1+rand.IntN(5)) * time.Millisecond):
		}
	}
	return nil
}

// runHolders makes this process one of holders, until its standard input ends.
func runHolders(t *testing.T, work func(ctx context.Context, c *redlock.Client, me int)) {
	c, err := redlock.New(redlock.Config{Nodes: strings.Split(os.Getenv(holdersEnv), ","), Retry: redlock.Retry{Min: time.Millisecond, Max: 10 * time.Millisecond}})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	var goroutines sync.WaitGroup
	for me := range 8 {
		goroutines.Add(1)
		go func() {
			defer goroutines.Done()
			for ctx.Err() == nil {
				work(ctx, c, me)
			}
		}()
	}
	goroutines.Wait()
	require.NoError(t, c.Close())
}

// holders are processes, and when which of their functions held which key.
type holders struct {
	t     *testing.T
	nodes []string
	mu    sync.Mutex
	times map[string]map[string]*heldTime // by key and holder
	turns map[string]int                  // of a process
	procs []*exec.Cmd
	stdin []io.Closer
	ended sync.WaitGroup
}

type heldTime struct {
	holder      string
	first, last int64
}

// startHolders starts n processes of the calling test.
func startHolders(t *testing.T, nodes []string, n int) *holders {
	h := &holders{t: t, nodes: nodes, times: map[string]map[string]*heldTime{}, turns: map[string]int{}}
	h.procs, h.stdin = make([]*exec.Cmd, n), make([]io.Closer, n)
	for i := range n {
		h.start(i)
	}
	t.Cleanup(func() { h.stop() })
	return h
}

func (h *holders) start(i int) {
	cmd := exec.Command(os.Args[0], "-test.run", "^"+h.t.Name()+"$", "-test.timeout", "10m")
	cmd.Env = append(os.Environ(), holdersEnv+"="+strings.Join(h.nodes, ","))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	require.NoError(h.t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(h.t, err)
	require.NoError(h.t, cmd.Start())
	h.procs[i], h.stdin[i] = cmd, stdin
	h.ended.Add(1)
	go func() {
		defer h.ended.Done()
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			h.hear(fmt.Sprint(i), lines.Text())
		}
		_ = cmd.Wait()
	}()
}

func (h *holders) hear(process, line string) {
	var key, holder string
	var at int64
	if n, _ := fmt.Sscanf(line, "held %s %s %d", &key, &holder, &at); n != 3 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.times[key] == nil {
		h.times[key] = map[string]*heldTime{}
	}
	if held := h.times[key][holder]; held != nil {
		held.last = max(held.last, at)
		return
	}
	h.times[key][holder] = &heldTime{holder, at, at}
	h.turns[process]++
}

func (h *holders) signal(i int, s syscall.Signal) { _ = h.procs[i].Process.Signal(s) }

// kill ends a process at once, and starts another in its place.
func (h *holders) kill(i int) {
	h.signal(i, syscall.SIGKILL)
	h.start(i)
}

func (h *holders) stop() {
	for i, c := range h.stdin {
		if c == nil {
			continue
		}
		h.signal(i, syscall.SIGCONT)
		_ = c.Close()
		h.stdin[i] = nil
	}
	testkit.Join(h.t, &h.ended)
}

// turnsOf is how often functions of a process have held a lock.
func (h *holders) turnsOf(i int) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.turns[fmt.Sprint(i)]
}

// requireApart checks that no two held a key at once.
func (h *holders) requireApart() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for key, times := range h.times {
		sorted := slices.SortedFunc(maps.Values(times), func(a, b *heldTime) int { return int(a.first - b.first) })
		for i := 1; i < len(sorted); i++ {
			a, b := sorted[i-1], sorted[i]
			require.Less(h.t, a.last, b.first, "%s: %s and %s hold it at once, for %v", key, a.holder, b.holder, time.Duration(a.last-b.first))
			b.last = max(a.last, b.last)
		}
	}
}

// TestRealHold: four processes of eight goroutines each run functions with few locks, while
// masters and processes are stopped and killed, and callers give up. At no moment have two
// functions of one key a context that is alive.
func TestRealHold(t *testing.T) {
	if os.Getenv(holdersEnv) != "" {
		turns := make([]int, 8)
		runHolders(t, func(ctx context.Context, c *redlock.Client, me int) {
			turns[me]++
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			if rand.IntN(8) == 0 {
				time.AfterFunc(time.Duration(rand.IntN(400))*time.Millisecond, cancel)
			}
			long := time.Duration(rand.IntN(60)) * time.Millisecond
			if rand.IntN(2) == 0 {
				long *= 20 // several TTLs
			}
			key := fmt.Sprint("k", rand.IntN(4))
			_ = c.Do(ctx, key, brief, func(ctx context.Context) error {
				return hold(ctx, fmt.Sprintf("%d.%d.%d", os.Getpid(), me, turns[me]), long, key)
			})
		})
		return
	}
	t.Parallel()
	servers := realredis.StartN(t, 5, realredis.Options{Persistent: true})
	h := startHolders(t, cluster.PersistentAddrs(servers), 4)
	for i := range 4 {
		testkit.Await(t, "each to work", func() bool { return h.turnsOf(i) > 0 })
	}
	total := 4 * time.Second
	if testkit.Long() {
		total = 90 * time.Second
	}
	pause := func(most time.Duration) { awaitPassed(t, time.Duration(rand.Int64N(int64(most)))) }
	for start := time.Now(); time.Since(start) < total; {
		switch i := rand.IntN(10); {
		case i < 4: // at times a majority
			stopped := servers[:1+rand.IntN(3)]
			for _, s := range stopped {
				require.NoError(t, s.Stop())
			}
			pause(2 * brief)
			for _, s := range stopped {
				require.NoError(t, s.Cont())
			}
		case i < 7:
			p := rand.IntN(4)
			h.signal(p, syscall.SIGSTOP)
			pause(4 * brief)
			h.signal(p, syscall.SIGCONT)
		case i < 8:
			h.kill(rand.IntN(4))
		default:
			s := servers[3+rand.IntN(2)]
			require.NoError(t, s.Kill())
			pause(brief)
			require.NoError(t, s.Restart())
		}
		pause(brief / 2)
	}
	before := []int{h.turnsOf(0), h.turnsOf(1), h.turnsOf(2), h.turnsOf(3)}
	for i := range 4 {
		testkit.Await(t, "each to go on", func() bool { return h.turnsOf(i) > before[i] })
	}
	h.stop()
	h.requireApart()
	n := 0
	for _, times := range h.times {
		n += len(times)
	}
	t.Log(n, "locks held")
}

// TestRealSets: four processes of which each wants three of four keys, in opposite orders,
// with and without a pause: none starves, and no two have a key at once.
func TestRealSets(t *testing.T) {
	if os.Getenv(holdersEnv) != "" {
		turns := make([]int, 8)
		runHolders(t, func(ctx context.Context, c *redlock.Client, me int) {
			turns[me]++
			keys := []string{"a", "b", "c", "d"}
			rand.Shuffle(4, func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
			l, err := c.AcquireAll(ctx, 2*time.Second, keys[:3]...)
			if err != nil {
				return
			}
			kept, stop := l.KeepAlive(ctx)
			defer stop()
			err = hold(kept, fmt.Sprintf("%d.%d.%d", os.Getpid(), me, turns[me]), time.Millisecond, keys[:3]...)
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("hold: %v", err)
			}
			l.ReleaseAsync()
		})
		return
	}
	t.Parallel()
	servers := realredis.StartN(t, 5)
	h := startHolders(t, cluster.RealAddrs(servers), 4)
	turns := 20
	if testkit.Long() {
		turns = 500
	}
	for i := range 4 {
		testkit.AwaitFor(t, 3*testkit.Patience, "turns of each", func() bool { return h.turnsOf(i) >= turns })
	}
	h.stop()
	h.requireApart()
}
