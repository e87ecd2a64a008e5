package recipes

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/testkit"
)

// campaign has a candidate campaign beside the test.
func campaign(t *testing.T, e Election, value string) <-chan *Term {
	elected, ctx := make(chan *Term, 1), bounded(t)
	go func() {
		if term, err := e.Campaign(ctx, value); err == nil {
			elected <- term
		}
	}()
	return elected
}

func requireLeader(t *testing.T, e Election, want string) {
	value, ok, err := e.Leader(bounded(t))
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, want, value)
}

// TestElection: the leader hears of the other candidate and resigns; the next one loses the leadership. An observer
// sees each leader, and ends with its context.
func TestElection(t *testing.T) {
	clients, masters := instances(t, 3)
	a, b, c := Election{clients[0], "shard:7"}, Election{clients[1], "shard:7"}, Election{clients[2], "shard:7"}
	_, ok, err := c.Leader(bounded(t))
	require.NoError(t, err)
	require.False(t, ok)
	ctx, cancel := context.WithCancel(bounded(t))
	observed := make(chan string)
	go func() {
		defer close(observed)
		for value := range c.Observe(ctx) {
			observed <- value
		}
	}()

	first := testkit.Get(t, campaign(t, a, "10.0.0.1:80"))
	require.Equal(t, "10.0.0.1:80", testkit.Get(t, observed))
	requireLeader(t, c, "10.0.0.1:80")
	require.False(t, testkit.IsClosed(first.Contested()))
	elected := campaign(t, b, "10.0.0.2:80")
	testkit.Get(t, first.Contested())
	require.NoError(t, first.Err())
	require.NoError(t, first.Resign())
	require.ErrorIs(t, context.Cause(first), redlock.ErrStopped)
	second := testkit.Get(t, elected)
	requireLeader(t, a, "10.0.0.2:80")
	require.Equal(t, "10.0.0.2:80", testkit.Get(t, observed))

	require.False(t, testkit.IsClosed(second.Contested()))
	elected = campaign(t, a, "10.0.0.1:81")
	testkit.Get(t, second.Contested())
	depose(t, c)
	third := testkit.Get(t, elected)
	require.ErrorIs(t, second.lock.Extend(bounded(t), redlock.MinTTL), redlock.ErrNotHeld) // sooner than the next renewal
	testkit.Get(t, second.Done())
	require.ErrorIs(t, context.Cause(second), redlock.ErrNotHeld)
	require.ErrorIs(t, second.Resign(), redlock.ErrNotHeld)
	require.Equal(t, "10.0.0.1:81", testkit.Get(t, observed))

	require.NoError(t, third.Resign())
	testkit.Get(t, campaign(t, b, "10.0.0.1:81"))
	require.Equal(t, "10.0.0.1:81", testkit.Get(t, observed)) // of another leader
	cancel()
	_, ok = <-observed
	require.False(t, ok)

	masters.Stop(0)
	masters.Stop(1)
	_, _, err = c.Leader(bounded(t))
	require.ErrorIs(t, err, redlock.ErrNoQuorum)
}

// depose takes the leadership from the leader, as an operator may.
func depose(t *testing.T, e Election) {
	seen, err := e.Client.Inspect(t.Context(), e.Key)
	require.NoError(t, err)
	lock, err := e.Client.Attach(t.Context(), e.Key, seen.Token(), time.Now().Add(termTTL))
	require.NoError(t, err)
	require.NoError(t, lock.Release(t.Context()))
}

// TestElectionInOneProcess: the leadership passes between candidates of one client, each with its own value.
func TestElectionInOneProcess(t *testing.T) {
	clients, _ := instances(t, 1)
	e := Election{clients[0], "shard:7"}
	term := testkit.Get(t, campaign(t, e, "worker-0"))
	for _, value := range []string{"worker-1", "worker-2", "worker-2"} {
		require.False(t, testkit.IsClosed(term.Contested()))
		elected := campaign(t, e, value)
		testkit.Get(t, term.Contested())
		require.NoError(t, term.Resign())
		term = testkit.Get(t, elected)
		requireLeader(t, e, value)
	}
	for value := range e.Observe(bounded(t)) {
		require.Equal(t, "worker-2", value)
		break
	}
}

// TestCampaignEnds: a candidate gives up with its context, and then does not lead. A value out of its limits is
// refused.
func TestCampaignEnds(t *testing.T) {
	clients, _ := instances(t, 2)
	a, b := Election{clients[0], "shard:7"}, Election{clients[1], "shard:7"}
	_, err := a.Campaign(bounded(t), "host 1")
	require.ErrorIs(t, err, redlock.ErrArgument)
	ctx, cancel := context.WithCancel(bounded(t))
	term, err := a.Campaign(ctx, "host-1")
	require.NoError(t, err)
	gaveUp := make(chan error, 1)
	go func() {
		_, err := b.Campaign(ctx, "host-2")
		gaveUp <- err
	}()
	testkit.Get(t, term.Contested())
	cancel()
	require.ErrorIs(t, testkit.Get(t, gaveUp), context.Canceled)
	require.NoError(t, term.Err()) // it does not end with the campaign
	require.NoError(t, term.Resign())
	_, ok, err := b.Leader(bounded(t))
	require.NoError(t, err)
	require.False(t, ok)
	require.NoError(t, clients[1].Close())
	for range b.Observe(bounded(t)) {
		t.Error("observed by a closed client")
	}
	require.NoError(t, bounded(t).Err())
}
