package redlock_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/fakeredis"
)

// bound is how long a test of this family waits for what must happen. A test
// that fails by a hang ends after it.
const bound = 5 * time.Second

// apartEnv names the test that runs in a process of its own.
const apartEnv = "REDLOCK_TEST_APART"

// apart runs a test in a process of its own: a panic on a goroutine of the
// client ends that process, and fails this test alone.
func apart(t *testing.T, body func(t *testing.T)) {
	t.Helper()
	if os.Getenv(apartEnv) == t.Name() {
		body(t)
		return
	}
	pattern := "^" + strings.ReplaceAll(t.Name(), "/", "$/^") + "$"
	ctx, cancel := context.WithTimeout(t.Context(), 6*bound)
	defer cancel()
	child := exec.CommandContext(ctx, os.Args[0], "-test.v", "-test.run", pattern, "-test.timeout", (5 * bound).String())
	child.Env = append(os.Environ(), apartEnv+"="+t.Name())
	printed, err := child.CombinedOutput()
	text := string(printed)
	require.NoError(t, err, "%s", text[:min(len(text), 4<<10)])
	require.Contains(t, text, "--- PASS: "+t.Name(), "it did not run")
}

// panicked is the error of a call that ended in a panic.
type panicked struct{ value any }

func (p panicked) Error() string { return fmt.Sprint("panic: ", p.value) }

// start makes a call in the background. A panic becomes its result.
func start(f func() error) <-chan error {
	c := make(chan error, 1)
	go func() {
		defer func() {
			if v := recover(); v != nil {
				c <- panicked{v}
			}
		}()
		c <- f()
	}()
	return c
}

// soon waits for a result, and fails the test if there is none in time.
func soon(t testing.TB, what string, c <-chan error) error {
	t.Helper()
	return before(t, bound, what, c)
}

func before(t testing.TB, d time.Duration, what string, c <-chan error) error {
	t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case err := <-c:
		return err
	case <-timer.C:
		require.Fail(t, "it does not return: "+what)
		return nil
	}
}

// awaitSoon is await with a shorter bound.
func awaitSoon(t testing.TB, d time.Duration, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(d); !condition(); {
		if time.Now().After(deadline) {
			require.Fail(t, "waited in vain: "+what)
		}
		time.Sleep(500 * time.Microsecond)
	}
}

// newBound is newClient, but it fails where New or Close hangs.
func newBound(t testing.TB, nodes []string, change ...func(*redlock.Config)) *redlock.Client {
	t.Helper()
	cfg := redlock.Config{
		Nodes: nodes, NodeTimeout: patience, StallTimeout: patience, DialTimeout: patience,
		RetryMin: time.Millisecond, RetryMax: 5 * time.Millisecond,
	}
	for _, f := range change {
		f(&cfg)
	}
	markPassword(&cfg)
	var c *redlock.Client
	require.NoError(t, soon(t, "New", start(func() (err error) {
		c, err = redlock.New(cfg)
		return err
	})))
	t.Cleanup(func() {
		closed := start(c.Close)
		select {
		case err := <-closed:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(bound):
			t.Error("Close does not return")
		}
	})
	return c
}

// newBoundRig is newRigOf with newBound.
func newBoundRig(t *testing.T, servers []*fakeredis.Server, change ...func(*redlock.Config)) *rig {
	t.Helper()
	r := &rig{servers: servers}
	for _, s := range servers {
		r.heard = append(r.heard, listen(s))
	}
	r.Client = newBound(t, fakeredis.Addrs(servers), change...)
	t.Cleanup(func() { r.heal(t) })
	return r
}

// impatient gives a client the timeouts that it has by default.
func impatient(c *redlock.Config) { c.NodeTimeout, c.StallTimeout, c.DialTimeout = 0, 0, 0 }

// pair acquires a lock and releases it, within bound.
func pair(t testing.TB, c *redlock.Client, key string) {
	t.Helper()
	require.NoError(t, soon(t, "a pair on "+key, start(func() error {
		l, err := c.TryAcquire(context.Background(), key, ttl)
		if err != nil {
			return err
		}
		return l.Release(context.Background())
	})))
}

// statsOf is Stats, within bound.
func statsOf(t testing.TB, c *redlock.Client) (s redlock.Stats) {
	t.Helper()
	require.NoError(t, soon(t, "Stats", start(func() error {
		s = c.Stats()
		return nil
	})))
	return s
}

// clog mutes all masters and submits operations until one stays in the queue:
// what is submitted from then on waits, and travels in one batch after heal. It
// returns a function that waits for these operations.
func (r *rig) clog(t testing.TB) (unclogged func()) {
	t.Helper()
	for _, s := range r.servers {
		s.Mute()
	}
	done := make(chan error, 200)
	sent := 0
	for seen := 0; seen < 2; seen++ { // what waits at the first look may be sent behind it
		for ; statsOf(t, r.Client).Waiting == 0; sent++ {
			require.Less(t, sent, cap(done), "there is no bound")
			op := &redlock.Op{Kind: redlock.OpRelease, Key: []byte("lock:clog")}
			op.Done = func(op *redlock.Op) { done <- op.Err() }
			require.NoError(t, r.Submit(op))
		}
		runtime.Gosched()
	}
	return func() {
		t.Helper()
		for range sent {
			_ = soon(t, "the operations in front", done)
		}
	}
}

// submitted submits an operation and returns where its result will be.
func submitted(t testing.TB, c *redlock.Client, op *redlock.Op) <-chan error {
	t.Helper()
	done := make(chan error, 1)
	op.Done = func(op *redlock.Op) { done <- op.Err() }
	require.NoError(t, soon(t, "Submit", start(func() error { return c.Submit(op) })))
	return done
}
