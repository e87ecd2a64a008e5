package fence

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/client/texts"
	"github.com/redlock-go/redlock/internal/rules/fencing"
)

// TestVoteOfAFormerConnection: a node has its vote on the connection on which it has answered so.
// Here it restarts and is connected again before the answer is taken.
func TestVoteOfAFormerConnection(t *testing.T) {
	voting := 0
	c := New(Config{
		Env: engine.Env{Clock: clock.New(), Nodes: []string{"a"}, Ring: func() {}}, Now: 1, MaxTTL: time.Second,
		Voting: func() { voting++ },
	})
	c.Up(0, 1, "run", false)
	former := c.nodes[0].life
	c.Up(0, 2, "run", false)
	answer := fencing.Answer{Code: fencing.Active, Text: "active:" + c.fleet.Name() + ":run"}
	(&question{client: c, life: former, answer: answer}).noted()
	_, why := c.Vote(0)
	require.ErrorIs(t, why, texts.ErrNoFence)
	require.Zero(t, voting, "Ready is woken")
	(&question{client: c, life: c.nodes[0].life, answer: answer}).noted()
	_, why = c.Vote(0)
	require.NoError(t, why)
	require.Equal(t, 1, voting)
}
