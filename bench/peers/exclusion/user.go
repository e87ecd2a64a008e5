//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/go-redsync/redsync/v4"
	rsredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"golang.org/x/sys/unix"

	"github.com/redlock-go/redlock"
)

const (
	userEnv = "REDLOCK_BENCH_EXCLUSION"

	byOurs       = "redlock"
	byRedsync    = "redsync"
	brokenPrefix = "broken "

	goroutines = 8 // of a process of this library
)

// task is what a process does.
type task struct {
	Kind  string
	Nodes []string
}

// user is a process that uses locks. It writes a line for each time at which one has been held, which the judge hears:
//
//	held key holder mode nanoseconds
type user struct {
	*os.Process
	kind  string
	stdin io.Closer
	ended sync.WaitGroup
}

func startUser(kind string, nodes []string, j *judge) (*user, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(task{kind, nodes})
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self)
	cmd.Env, cmd.Stderr = append(os.Environ(), userEnv+"="+string(text)), os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	u := &user{kind: kind}
	if u.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	u.Process = cmd.Process
	u.ended.Go(func() {
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			j.hear(kind, lines.Text())
		}
		_ = cmd.Wait()
	})
	return u, nil
}

// end has the process end, and waits for it.
func (u *user) end() {
	_ = u.Signal(syscall.SIGCONT)
	_ = u.stdin.Close()
	u.ended.Wait()
}

// machineTime reads the clock that all processes of the machine share.
func machineTime() int64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &t)
	return t.Nano()
}

var (
	serial  atomic.Int64
	output  = bufio.NewWriter(os.Stdout) // guarded by writing
	writing sync.Mutex
)

// hold works under a lock for a while, as long as it is held.
func (h held) hold(d time.Duration) {
	holder, mode := fmt.Sprint(os.Getpid(), ".", serial.Add(1)), "reader"
	if h.isWriter {
		mode = "writer"
	}
	for start := time.Now(); ; time.Sleep(min(d, time.Duration(1+rand.IntN(5))*time.Millisecond)) {
		now := machineTime()
		if h.remaining() <= 0 {
			return
		}
		writing.Lock()
		for _, key := range h.keys {
			fmt.Fprintf(output, "held %d %s %s %d\n", key, holder, mode, now)
		}
		_ = output.Flush() // before the process may be killed
		writing.Unlock()
		if time.Since(start) >= d {
			return
		}
	}
}

// serve is a process, until its standard input ends.
func serve(text string) error {
	var t task
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	callers := goroutines
	var acquire func(context.Context) (held, error)
	if t.Kind == byOurs {
		cfg := redlock.Config{Nodes: t.Nodes, MaxTTL: ttl, Logger: slog.New(slog.DiscardHandler)}
		c, err := redlock.New(cfg)
		if err != nil {
			return err
		}
		defer c.Close()
		acquire = func(ctx context.Context) (held, error) { return byUs(ctx, c) }
	} else {
		callers = 3
		logging.Disable()
		var clients []*redis.Client
		var pools []rsredis.Pool
		for _, n := range t.Nodes {
			n = strings.TrimSuffix(strings.TrimPrefix(n, "redis://"), "?persistent=yes")
			c := redis.NewClient(&redis.Options{Addr: n, DialTimeout: time.Second, ReadTimeout: time.Second, WriteTimeout: time.Second, MaxRetries: -1, DialerRetries: 1, DisableIdentity: true})
			defer c.Close()
			clients, pools = append(clients, c), append(pools, goredis.NewPool(c))
		}
		locks := redsync.New(pools...)
		acquire = func(ctx context.Context) (held, error) { return bySync(ctx, locks) }
		if broken, ok := strings.CutPrefix(t.Kind, brokenPrefix); ok {
			callers = 1
			acquire = func(ctx context.Context) (held, error) { return byBroken(ctx, clients[0], broken == "writer") }
		}
	}
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for ctx.Err() == nil {
				attempt, stop := context.WithTimeout(ctx, 2*ttl)
				h, err := acquire(attempt)
				stop()
				if err == nil {
					h.hold(rand.N(20 * time.Millisecond))
					h.release()
				}
				time.Sleep(rand.N(10 * time.Millisecond))
			}
		})
	}
	all.Wait()
	return nil
}
