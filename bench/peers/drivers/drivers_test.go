package drivers

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/bench/floor"
	"github.com/redlock-go/redlock/bench/harness"
	"github.com/redlock-go/redlock/bench/ours"
	"github.com/redlock-go/redlock/internal/test/realredis"
)

// patience is for what should take no time on a machine with some to spare.
const patience = time.Minute

// forEach runs a test with every driver that has workers, against five real masters.
func forEach(t *testing.T, test func(t *testing.T, d harness.Driver, cfg harness.Config)) {
	var addrs []string
	for _, s := range realredis.StartN(t, 5) {
		addrs = append(addrs, s.Addr())
	}
	for _, d := range All() {
		switch d.(type) {
		case floor.Driver, ours.Submitter, Exchange:
			continue
		}
		t.Run(d.Name(), func(t *testing.T) {
			test(t, d, harness.Config{Nodes: addrs, TTL: patience / 4, Scenario: harness.Uncontended, Concurrency: 2})
		})
	}
}

// workers opens two of them.
func workers(t *testing.T, d harness.Driver, cfg harness.Config) (one, two harness.Worker) {
	var session harness.Session
	err := inTime(d, func() (err error) {
		session, err = d.Open(t.Context(), cfg)
		return err
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, session.Close()) })
	one, err = session.(harness.Pool).Worker()
	require.NoError(t, err)
	two, err = session.(harness.Pool).Worker()
	require.NoError(t, err)
	return one, two
}

// inTime does something until no node is late for it: a machine that is busy enough makes one late.
func inTime(d harness.Driver, do func() error) error {
	err := do()
	for end := time.Now().Add(patience); err != nil && isLate(d, err) && time.Now().Before(end); {
		err = do()
	}
	return err
}

// obtain waits for a lock.
func obtain(t *testing.T, d harness.Driver, w harness.Worker, key string) error {
	return inTime(d, func() error {
		ok, err := w.Acquire(t.Context(), key)
		if err == nil && !ok {
			err = errors.New("came back without the lock")
		}
		return err
	})
}

// acquire tries until the nodes agree: a machine that is busy enough may make
// one of them late.
func acquire(t *testing.T, w harness.Worker, key string) {
	require.Eventually(t, func() bool {
		ok, err := w.Acquire(t.Context(), key)
		return ok && err == nil
	}, patience, time.Millisecond)
}

// release gives a lock back. A driver that does not wait for all nodes may cut
// off one that had the lock, ask one that never got it, and report that; the
// lock's TTL ends then what is left.
func release(t *testing.T, d harness.Driver, w harness.Worker) {
	if err := w.Release(t.Context()); err != nil {
		require.True(t, isLate(d, err), "%v", err)
		require.NoError(t, t.Context().Err())
	}
}

// isLate reports whether an error is that of nodes that were not waited for, or
// not for longer: those of a machine that is busy are late.
func isLate(d harness.Driver, err error) bool {
	var slow net.Error
	return strings.Contains(d.Name(), "-ff") || errors.Is(err, redlock.ErrNoQuorum) || errors.As(err, &slow) && slow.Timeout()
}

func TestAHolderExcludesOthers(t *testing.T) {
	forEach(t, func(t *testing.T, d harness.Driver, cfg harness.Config) {
		one, two := workers(t, d, cfg)
		key := "exclude:" + d.Name()
		acquire(t, one, key)
		for clean := 0; clean < 3; {
			ok, err := two.Acquire(t.Context(), key)
			require.False(t, ok)
			if err == nil {
				clean++
				continue
			}
			// One that does not wait for all nodes may cut off those that it has
			// yet to dial, and report that.
			require.True(t, isLate(d, err), "%v", err)
			require.NoError(t, t.Context().Err())
		}
		acquire(t, two, key+":another")
		release(t, d, two)
		release(t, d, one)
		acquire(t, two, key)
		release(t, d, two)
	})
}

func TestAHotKeyIsWaitedFor(t *testing.T) {
	forEach(t, func(t *testing.T, d harness.Driver, cfg harness.Config) {
		cfg.Scenario = harness.Contended
		one, two := workers(t, d, cfg)
		key := "wait:" + d.Name()
		acquire(t, one, key)
		got := make(chan error, 1)
		go func() { got <- obtain(t, d, two, key) }()
		select {
		case err := <-got:
			require.Fail(t, "did not wait", "%v", err)
		case <-time.After(50 * time.Millisecond):
		}
		release(t, d, one)
		require.NoError(t, <-got)
		release(t, d, two)
	})
}

func TestAMajorityIsEnough(t *testing.T) {
	forEach(t, func(t *testing.T, d harness.Driver, cfg harness.Config) {
		if _, weaker := d.(harness.Weaker); weaker && d.(harness.Weaker).Weaker() != "" {
			t.Skip("it locks on one server")
		}
		servers := realredis.StartN(t, 5)
		cfg.Nodes = nil
		for _, s := range servers {
			cfg.Nodes = append(cfg.Nodes, s.Addr())
		}
		one, _ := workers(t, d, cfg)
		require.NoError(t, servers[0].Kill())
		require.NoError(t, servers[1].Kill())
		acquire(t, one, "majority")
		release(t, d, one)
		require.NoError(t, servers[2].Kill())
		ok, err := one.Acquire(t.Context(), "minority")
		require.False(t, ok)
		require.Error(t, err)
	})
}
