//go:build linux

package e2e

import (
	"bufio"
	"cmp"
	"context"
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
	"github.com/redlock-go/redlock/internal/test/testkit"
)

// A process of holders is this test binary with the addresses of the masters in holdersEnv. It writes a line for each
// moment at which a goroutine has seen its lock held, with its fencing token or 0:
//
//	held key holder token nanoseconds
//
// The nanoseconds are read before the lock is asked. An ended lock stays so: it was held at this
// moment, although the process may have stood still between the two. So there is no exception: from
// the first line of a holder to its last the lock was held. No two such times of one key may
// overlap, unless both share it, and tokens grow from one to the next.
const (
	holdersEnv = "REDLOCK_TEST_HOLDERS"
	holderEnv  = "REDLOCK_TEST_HOLDER" // which of them it is

	sharedHolder = "shared." // begins the names of those who share their lock
)

// machineTime reads the clock shared by all processes of this machine.
func machineTime() (nanoseconds int64) {
	var ts syscall.Timespec
	_, _, _ = syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, 1, uintptr(unsafe.Pointer(&ts)), 0) // CLOCK_MONOTONIC
	return ts.Nano()
}

// hold is the work of a holder for a while, as long as its lock is held.
func hold(isHeld func() bool, holder string, token uint64, long time.Duration, keys ...string) {
	for start := time.Now(); ; time.Sleep(min(long, time.Duration(1+rand.IntN(5))*time.Millisecond)) {
		now := machineTime()
		if !isHeld() {
			return
		}
		text := ""
		for _, key := range keys {
			text += fmt.Sprintf("held %s %s %d %d\n", key, holder, token, now)
		}
		_, _ = os.Stdout.WriteString(text)
		if time.Since(start) >= long {
			return
		}
	}
}

// say writes a line of a process of holders: a word, a subject, and the time.
func say(word, subject string) {
	_, _ = fmt.Fprintf(os.Stdout, "%s %s %d\n", word, subject, machineTime())
}

// contend takes a key, several, or any of several once, in one of all ways, for a goroutine. It reports each grant, and an
// error of a call that waits although its context has not ended.
func contend(ctx context.Context, c *redlock.Client, who string, turn int, ttl time.Duration) {
	holder, key, permits := fmt.Sprintf("%s.%d", who, turn), fmt.Sprint("k", rand.IntN(3)), redlock.Permits("p", 3)
	long, waits := rand.N(8*time.Millisecond), true
	var l redlock.Lock
	var err error
	switch rand.IntN(16) {
	case 0:
		l, err = c.AcquireAll(ctx, ttl, "k0", "k1")
	case 1: // a writer
		l, err = c.AcquireAll(ctx, ttl, permits...)
	case 2: // a reader
		waits = false
		l, err = c.TryAcquireAny(ctx, ttl, permits...)
	case 3, 4:
		l, err = c.AcquireAny(ctx, ttl, permits...)
	case 5, 6, 7:
		waits = false
		l, err = c.TryAcquire(ctx, key, ttl)
	case 8, 9:
		holder = sharedHolder + holder
		l, err = c.AcquireShared(ctx, key, ttl)
	case 10, 11: // kept alive, some for several TTLs
		if rand.IntN(16) == 0 {
			long = 3 * ttl
		}
		_ = c.Do(ctx, key, ttl, func(ctx context.Context) error {
			say("granted", who)
			token, _ := redlock.FenceFrom(ctx)
			hold(func() bool { return ctx.Err() == nil }, holder, token, long, key)
			return nil
		})
		return
	default:
		l, err = c.Acquire(ctx, key, ttl)
	}
	if err != nil {
		if waits && ctx.Err() == nil {
			say("wrong", fmt.Sprintf("%q", err.Error()))
		}
		time.Sleep(rand.N(20 * time.Millisecond))
		return
	}
	say("granted", who)
	hold(func() bool { return l.Remaining() > 0 }, holder, l.Fence(), long, l.Keys()...)
	if rand.IntN(4) == 0 {
		_ = l.Extend(ctx, ttl)
	}
	switch ends := rand.IntN(32); {
	case ends == 0: // with its TTL
	case ends < 4:
		l.ReleaseAsync()
	default:
		_ = l.Release(context.Background())
	}
}

// perProcess is the number of goroutines of a process.
func perProcess() int {
	if testkit.Long() {
		return 8
	}
	return 3
}

// runHolders makes this process one of holders, until its standard input ends.
func runHolders(t *testing.T, work func(ctx context.Context, c *redlock.Client, me int), change ...func(*redlock.Config)) {
	cfg := redlock.Config{Nodes: strings.Split(os.Getenv(holdersEnv), ","), Retry: redlock.Retry{Min: time.Millisecond, Max: 10 * time.Millisecond}}
	for _, f := range change {
		f(&cfg)
	}
	c := testkit.Must(redlock.New(cfg))(t)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	var goroutines sync.WaitGroup
	for me := range perProcess() {
		goroutines.Go(func() {
			for ctx.Err() == nil {
				work(ctx, c, me)
			}
		})
	}
	goroutines.Wait()
	require.NoError(t, c.Close())
}

// holders are processes, and when their functions held which key.
type holders struct {
	t       *testing.T
	nodes   []string
	mu      sync.Mutex
	times   map[string]map[string]*heldTime // by key and holder
	turns   map[string]int                  // of a process
	procs   []*exec.Cmd
	stdin   []io.Closer
	ended   sync.WaitGroup
	largest uint64                     // token
	other   func(process, line string) // receives all other lines, under mu
}

type heldTime struct {
	holder      string
	token       uint64
	first, last int64
}

// startHolders starts n processes of the calling test, and waits until each has held a lock.
func startHolders(t *testing.T, nodes []string, n int, other func(process, line string)) *holders {
	h := &holders{t: t, nodes: nodes, times: map[string]map[string]*heldTime{}, turns: map[string]int{}, other: other}
	h.procs, h.stdin = make([]*exec.Cmd, n), make([]io.Closer, n)
	t.Cleanup(func() { h.stop() })
	for i := range n {
		h.start(i)
	}
	for i := range n {
		testkit.Await(t, fmt.Sprint("a lock of process ", i), func() bool { return h.turnsOf(i) > 0 })
	}
	return h
}

func (h *holders) start(i int) {
	cmd := exec.Command(os.Args[0], "-test.run", "^"+h.t.Name()+"$", "-test.timeout", "10m")
	cmd.Env = append(os.Environ(), holdersEnv+"="+strings.Join(h.nodes, ","), fmt.Sprint(holderEnv, "=", i))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	require.NoError(h.t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(h.t, err)
	require.NoError(h.t, cmd.Start())
	h.procs[i], h.stdin[i] = cmd, stdin
	h.ended.Go(func() {
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			h.hear(fmt.Sprint(i), lines.Text())
		}
		_ = cmd.Wait()
	})
}

func (h *holders) hear(process, line string) {
	var key, holder string
	var token uint64
	var at int64
	h.mu.Lock()
	defer h.mu.Unlock()
	if n, _ := fmt.Sscanf(line, "held %s %s %d %d", &key, &holder, &token, &at); n != 4 {
		h.other(process, line)
		return
	}
	h.largest = max(h.largest, token)
	if h.times[key] == nil {
		h.times[key] = map[string]*heldTime{}
	}
	if held := h.times[key][holder]; held != nil {
		held.last = max(held.last, at)
		return
	}
	h.times[key][holder] = &heldTime{holder, token, at, at}
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

// requireApart checks that no two held a key at once that they did not share, and that tokens grow, and returns the number of
// locks held.
func (h *holders) requireApart() (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for key, times := range h.times {
		last, alone := &heldTime{}, &heldTime{} // of all, and of those who did not share it: the one that ended last
		for _, b := range slices.SortedFunc(maps.Values(times), func(a, b *heldTime) int { return cmp.Compare(a.first, b.first) }) {
			before := last
			if strings.HasPrefix(b.holder, sharedHolder) {
				before = alone
			} else {
				require.True(h.t, alone.token < b.token || b.token == 0, "%s: %+v after %+v", key, b, alone)
				alone = b
			}
			require.Less(h.t, before.last, b.first, "%s: %s and %s hold it at once, for %v", key, before.holder, b.holder, time.Duration(before.last-b.first))
			if b.last > last.last {
				last = b
			}
			n++
		}
	}
	return n
}
