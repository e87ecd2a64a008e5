// Package cluster is the environment of black-box tests of the client: fake masters that record
// their commands, and a client of them. It also starts masters in a child process: their
// allocations are then not the client's.
package cluster

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/virtual"
)

// TTL is the TTL of locks that last for a whole test.
const TTL = 5 * time.Minute

// Cluster is a number of fake masters and a client of them.
type Cluster struct {
	*redlock.Client
	Servers   fakeredis.Servers
	Recorders []*Recorder      // one for each server
	Machine   *virtual.Machine // of the client, in virtual time
}

// New starts n masters and a client, made by Connect.
func New(t testing.TB, n int, change ...func(*redlock.Config)) *Cluster {
	t.Helper()
	return Of(t, Start(t, n), change...)
}

// Of is New with running masters.
func Of(t testing.TB, servers fakeredis.Servers, change ...func(*redlock.Config)) *Cluster {
	t.Helper()
	c := &Cluster{Servers: servers}
	for _, s := range servers {
		c.Recorders = append(c.Recorders, record(s))
	}
	if world(t) != nil {
		c.Machine = NewMachine(t)
		c.Client = ConnectOn(t, c.Machine, fakeredis.Addrs(servers), change...)
	} else {
		c.Client = Connect(t, fakeredis.Addrs(servers), change...)
	}
	// Before the client is closed, so it need not wait for the dead.
	t.Cleanup(func() { c.Heal(t) })
	return c
}

// Heal ends all faults of all masters.
func (c *Cluster) Heal(t testing.TB) {
	t.Helper()
	require.NoError(t, c.Servers.Heal())
}

// NoPushes has no master push the names of changed keys, so a client waiting for a lock asks again
// and again. It returns the cluster.
func (c *Cluster) NoPushes() *Cluster {
	c.Servers.Deny("CLIENT|TRACKING")
	return c
}

// Clog mutes all masters and fills the in-flight window. Later operations wait in the queue, and
// travel in one batch after Heal. unclogged waits for the operations that fill the window.
func (c *Cluster) Clog(t testing.TB) (unclogged func()) {
	t.Helper()
	AwaitHooks(t, c.Client) // while a callback runs, operations may wait without a reason
	c.Servers.Mute()
	done := make(chan error, 200)
	sent := 0
	for looks := 0; looks < 3; looks++ {
		for ; Stats(t, c.Client).Waiting == 0; sent++ {
			require.Less(t, sent, cap(done), "the window has no bound")
			op := ReleaseOp("lock:clog")
			op.Done = func(op *redlock.Op) { done <- op.Err() }
			require.NoError(t, c.Submit(op))
			looks = 0
		}
		time.Sleep(time.Millisecond) // an operation waiting at the last look may be sent now
	}
	return func() {
		t.Helper()
		for range sent {
			_ = testkit.Outcome(t, "an operation that fills the window", done)
		}
	}
}

// Holders is how many masters have a key.
func (c *Cluster) Holders(key string) int { return c.Servers.Holders(key) }

// AwaitHolders waits until so many masters have a key.
func (c *Cluster) AwaitHolders(t testing.TB, n int, key string) {
	t.Helper()
	testkit.Await(t, "holders of "+key, func() bool { return c.Holders(key) == n })
}

// AwaitEmpty waits until no master has any key.
func (c *Cluster) AwaitEmpty(t testing.TB) {
	t.Helper()
	testkit.Await(t, "all masters empty", func() bool {
		return !slices.ContainsFunc(c.Servers, func(s *fakeredis.Server) bool { return s.Len() > 0 })
	})
}

// AwaitUp waits until the client has a connection to every master again. A connection is up once it
// has carried a command, and only an acquire granted by all nodes shows this for all of them.
func (c *Cluster) AwaitUp(t testing.TB) {
	t.Helper()
	const key = "are all up?"
	testkit.Await(t, "all nodes up", func() bool {
		l, err := c.TryAcquire(t.Context(), key, TTL)
		if err != nil {
			return false
		}
		Settle(t, c.Client) // the last votes may be on their way
		all := c.Holders(key) == len(c.Servers)
		return l.Release(t.Context()) == nil && all
	})
}
