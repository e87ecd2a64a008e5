package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/virtual"
)

// PasswordEnv has all masters of Start ask for a password, and the whole log of their clients
// printed: for a run of the tests whose output is searched afterwards.
const PasswordEnv = "REDLOCK_MARKED_PASSWORD"

func Start(t testing.TB, n int, opts ...fakeredis.Options) fakeredis.Servers {
	t.Helper()
	if len(opts) == 0 {
		opts = make([]fakeredis.Options, 1)
	}
	opts = slices.Clone(opts)
	for i := range opts {
		opts[i].Password = os.Getenv(PasswordEnv)
		if w := world(t); w != nil {
			opts[i].Listen = w.Net.Listen
		}
	}
	return fakeredis.StartN(t, n, opts...)
}

// Connect makes a client with long timeouts and quick retries, unless change sets others. In
// virtual time it runs on a new machine.
func Connect(t testing.TB, nodes []string, change ...func(*redlock.Config)) *redlock.Client {
	t.Helper()
	if world(t) != nil {
		return ConnectOn(t, NewMachine(t), nodes, change...)
	}
	return connect(t, redlock.New, nodes, change)
}

// ConnectOn is Connect on a machine, in virtual time.
func ConnectOn(t testing.TB, m *virtual.Machine, nodes []string, change ...func(*redlock.Config)) *redlock.Client {
	t.Helper()
	return connect(t, m.Client, nodes, change)
}

func connect(t testing.TB, newClient func(redlock.Config) (*redlock.Client, error), nodes []string, change []func(*redlock.Config)) *redlock.Client {
	t.Helper()
	cfg := redlock.Config{
		Nodes:        nodes,
		Logger:       slog.New(slog.DiscardHandler),
		NodeTimeout:  testkit.Patience,
		StallTimeout: testkit.Patience,
		DialTimeout:  testkit.Patience,
		Retry:        redlock.Retry{Min: time.Millisecond, Max: 5 * time.Millisecond},
	}
	for _, f := range change {
		f(&cfg)
	}
	MarkPassword(&cfg)
	var c *redlock.Client
	testkit.Within(t, 2*testkit.Patience, "New", func() {
		var err error
		c, err = newClient(cfg)
		assert.NoError(t, err)
	})
	require.NotNil(t, c)
	for late := time.Now().Add(time.Second); areDialed(c) && time.Now().Before(late); { // New waits for a quorum of them
		time.Sleep(time.Millisecond)
	}
	t.Cleanup(func() {
		testkit.Within(t, 2*testkit.Patience, "Close", func() { assert.NoError(t, c.Close()) })
	})
	return c
}

// areDialed reports whether some nodes are in their first dial.
func areDialed(c *redlock.Client) bool {
	return slices.ContainsFunc(c.Stats().Nodes, func(n redlock.Node) bool { return errors.Is(n.Err, conn.ErrDown) })
}

// InGroups makes groups of so many nodes each.
func InGroups(n int) func(*redlock.Config) {
	return func(c *redlock.Config) { c.Groups, c.Nodes = slices.Collect(slices.Chunk(c.Nodes, n)), nil }
}

// MarkPassword gives the password of PasswordEnv to nodes without one. Connect does so.
func MarkPassword(cfg *redlock.Config) {
	password := os.Getenv(PasswordEnv)
	if password == "" {
		return
	}
	for _, nodes := range append(slices.Concat(cfg.Groups, cfg.NextGroups), cfg.Nodes, cfg.NextNodes) {
		for i, node := range nodes {
			scheme, at, found := strings.Cut(node, "://")
			if !found {
				scheme, at = "redis", node
			}
			if !strings.ContainsAny(at, "/@") && cfg.Credentials == nil {
				nodes[i] = scheme + "://:" + password + "@" + at
			}
		}
	}
}

// Portable takes the client off the raw socket path, or leaves it there.
func Portable(on bool) func(*redlock.Config) {
	return func(c *redlock.Config) { c.Portable = on }
}

// NodeTimeout sets Config.NodeTimeout.
func NodeTimeout(d time.Duration) func(*redlock.Config) {
	return func(c *redlock.Config) { c.NodeTimeout = d }
}

// MustAcquire acquires a lock in one attempt.
func MustAcquire(t testing.TB, c *redlock.Client, key string, ttl time.Duration) redlock.Lock {
	t.Helper()
	l, err := c.TryAcquire(context.Background(), key, ttl)
	require.NoError(t, err)
	return l
}

// DefaultTimeouts gives the client its default timeouts.
func DefaultTimeouts(c *redlock.Config) { c.NodeTimeout, c.StallTimeout, c.DialTimeout = 0, 0, 0 }

// Submit runs one operation to its end.
func Submit(t testing.TB, c *redlock.Client, op *redlock.Op) error {
	t.Helper()
	return testkit.Get(t, Begin(t, c, op))
}

// Begin submits an operation and returns the channel of its result.
func Begin(t testing.TB, c *redlock.Client, op *redlock.Op) <-chan error {
	t.Helper()
	done := make(chan error, 1)
	op.Done = func(op *redlock.Op) { done <- op.Err() }
	require.NoError(t, testkit.Try(t, "Submit", func() error { return c.Submit(op) }))
	return done
}

// Stats is Client.Stats. It must return promptly.
func Stats(t testing.TB, c *redlock.Client) (s redlock.Stats) {
	t.Helper()
	require.NoError(t, testkit.Try(t, "Stats", func() error {
		s = c.Stats()
		return nil
	}))
	return s
}

// AwaitNodesUp waits until so many nodes of a client are up, and no more.
func AwaitNodesUp(t testing.TB, c *redlock.Client, want int) {
	t.Helper()
	testkit.Await(t, fmt.Sprint(want, " nodes up"), func() bool {
		up := 0
		for _, n := range Stats(t, c).Nodes {
			if n.Up {
				up++
			}
		}
		return up == want
	})
}

// Settle waits until nothing is under way, the stragglers among the nodes included, and returns the
// stats of this moment.
func Settle(t testing.TB, c *redlock.Client) (s redlock.Stats) {
	t.Helper()
	testkit.Await(t, "quiet", func() bool {
		s = c.Stats()
		owed := s.Waiting + s.InFlight
		for _, n := range s.Nodes {
			owed += n.InFlight
		}
		return owed == 0
	})
	return s
}

// AwaitHooks waits for the hooks of all earlier events: they are called in order, and so is the
// completion of this release, of a free lock.
func AwaitHooks(t testing.TB, c *redlock.Client) {
	t.Helper()
	_ = Submit(t, c, ReleaseOp("lk:behind all votes"))
}

// ReleaseOp is the release of a lock that no node has.
func ReleaseOp(key string) *redlock.Op {
	op := &redlock.Op{Kind: redlock.OpRelease, Key: []byte(key)}
	op.SetToken("a token of no lock")
	return op
}

// AwaitNews waits, in virtual time, until the hooks of what has ended have been called.
func AwaitNews(t testing.TB) {
	t.Helper()
	synctest.Wait()
}

// Drift is subtracted from a TTL: TTL/100 + 2 ms.
func Drift(ttl time.Duration) time.Duration { return ttl/100 + 2*time.Millisecond }
