package redlock_test

import (
	"context"
	"errors"
	"flag"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/fakeredis"
)

// patience is how long a test waits for what must happen. It is reached only
// by a test that fails, and is also the timeout of clients that must not need
// one: what waits for it is not at once.
const patience = 30 * time.Second

// ttl is that of locks which must not end during a test.
const ttl = 5 * time.Minute

func TestMain(m *testing.M) {
	if os.Getenv(mastersEnv) != "" {
		serveMasters()
		return
	}
	// Tests that run beside others wait for real servers, not for processors.
	// What the command line says wins.
	_ = flag.Set("test.parallel", "12")
	os.Exit(m.Run())
}

// onBothPaths runs a test on the raw and on the portable socket path.
func onBothPaths(t *testing.T, test func(t *testing.T, portable bool)) {
	t.Run("raw", func(t *testing.T) { test(t, false) })
	t.Run("portable", func(t *testing.T) { test(t, true) })
}

// rig is a number of fake masters and a client of them.
type rig struct {
	*redlock.Client
	servers []*fakeredis.Server
	heard   []*ear
}

// newRig starts n masters and a client, whose timeouts are long and whose
// retries are quick, unless change says otherwise.
func newRig(t *testing.T, n int, change ...func(*redlock.Config)) *rig {
	t.Helper()
	return newRigOf(t, startN(t, n), change...)
}

func newRigOf(t *testing.T, servers []*fakeredis.Server, change ...func(*redlock.Config)) *rig {
	t.Helper()
	r := &rig{servers: servers}
	for _, s := range servers {
		r.heard = append(r.heard, listen(s))
	}
	r.Client = newClient(t, fakeredis.Addrs(servers), change...)
	// Before the client is closed, so that it need not wait for the dead.
	t.Cleanup(func() { r.heal(t) })
	return r
}

func newClient(t testing.TB, nodes []string, change ...func(*redlock.Config)) *redlock.Client {
	t.Helper()
	cfg := redlock.Config{
		Nodes:        nodes,
		NodeTimeout:  patience,
		StallTimeout: patience,
		DialTimeout:  patience,
		RetryMin:     time.Millisecond,
		RetryMax:     5 * time.Millisecond,
	}
	for _, f := range change {
		f(&cfg)
	}
	markPassword(&cfg)
	c, err := redlock.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func portably(on bool) func(*redlock.Config) { return func(c *redlock.Config) { c.Portable = on } }

func nodeTimeout(d time.Duration) func(*redlock.Config) {
	return func(c *redlock.Config) { c.NodeTimeout = d }
}

func (r *rig) heal(t *testing.T) {
	t.Helper()
	for _, s := range r.servers {
		require.NoError(t, s.Heal())
	}
}

// holders is how many masters have a key.
func (r *rig) holders(key string) (n int) {
	for _, s := range r.servers {
		if _, ok := s.Get(key); ok {
			n++
		}
	}
	return n
}

// awaitEmpty waits until no master has any key.
func (r *rig) awaitEmpty(t *testing.T) {
	t.Helper()
	await(t, "all masters empty", func() bool {
		return !slices.ContainsFunc(r.servers, func(s *fakeredis.Server) bool { return s.Len() > 0 })
	})
}

// awaitUp waits until the client has a connection to every master again. A
// connection is up once a command was carried over it, and only a won acquire
// of all nodes says that for all of them.
func (r *rig) awaitUp(t *testing.T) {
	t.Helper()
	await(t, "all nodes up", func() bool {
		l, err := r.TryAcquire(t.Context(), "are all up?", ttl)
		if err != nil {
			return false
		}
		all := r.holdersSoon("are all up?")
		return l.Release(t.Context()) == nil && all
	})
}

// holdersSoon waits a moment for all masters to have a key.
func (r *rig) holdersSoon(key string) bool {
	for range 50 {
		if r.holders(key) == len(r.servers) {
			return true
		}
		time.Sleep(time.Millisecond)
	}
	return false
}

// ear remembers the commands that a master hears, but for the probes with which
// each connection begins.
type ear struct {
	mu    sync.Mutex
	calls []call
}

type call struct {
	conn int64
	args []string
	at   time.Time
}

func listen(s *fakeredis.Server) *ear {
	e := &ear{}
	s.OnCommand(func(conn int64, args []string) {
		if slices.Contains(args, "redlock:probe") {
			return // of a handshake
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		e.calls = append(e.calls, call{conn, args, time.Now()})
	})
	return e
}

// all returns the calls of a command in which a word occurs, oldest first.
func (e *ear) all(name, word string) (found []call) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, c := range e.calls {
		if c.args[0] == name && slices.Contains(c.args, word) {
			found = append(found, c)
		}
	}
	return found
}

// awaitAll waits until every master has heard a command n times.
func (r *rig) awaitAll(t *testing.T, n int, name, word string) {
	t.Helper()
	await(t, name+" "+word, func() bool {
		return !slices.ContainsFunc(r.heard, func(e *ear) bool { return len(e.all(name, word)) < n })
	})
}

// await waits for a condition.
func await(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !condition(); {
		if time.Now().After(deadline) {
			require.Fail(t, "waited in vain", what)
		}
		time.Sleep(500 * time.Microsecond)
	}
}

// atOnce runs what must not wait for any timeout.
func atOnce(t testing.TB, f func()) {
	t.Helper()
	start := time.Now()
	f()
	require.Less(t, time.Since(start), patience/3, "not at once")
}

// result is what a call in the background returned.
type result struct {
	lock redlock.Lock
	err  error
}

// inBackground makes a call and returns where its result will be.
func inBackground(f func() (redlock.Lock, error)) <-chan result {
	c := make(chan result, 1)
	go func() {
		l, err := f()
		c <- result{l, err}
	}()
	return c
}

// get waits for a result.
func get[T any](t testing.TB, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		require.Fail(t, "no result")
	}
	return v
}

// isOneOf says whether an error is one that a caller may expect.
func isOneOf(err error, known ...error) bool {
	return slices.ContainsFunc(known, func(k error) bool { return errors.Is(err, k) })
}

func mustAcquire(t testing.TB, c *redlock.Client, key string, ttl time.Duration) redlock.Lock {
	t.Helper()
	l, err := c.TryAcquire(context.Background(), key, ttl)
	require.NoError(t, err)
	return l
}

// stopped is a clock that stands still.
func stopped() func() time.Time {
	now := time.Now()
	return func() time.Time { return now }
}
