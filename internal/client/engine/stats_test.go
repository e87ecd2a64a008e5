package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/base/metrics"
	"github.com/redlock-go/redlock/quorum"
)

// TestVotesAreCountedAndReported, each node's first in each round.
func TestVotesAreCountedAndReported(t *testing.T) {
	var reported []Vote
	p := newScripted(t, 3)
	p.engine.ledger.onVote = func(v Vote) { reported = append(reported, v) }
	p.down = 1 << 2
	first := p.submit(Acquire, "first")
	p.submit(Release, "second")
	p.submit(Release, "third")
	p.submit(Acquire, "fourth") // in one batch, of two commands
	p.turn(func() { p.reply(p.sent[0], 0, ok); p.reply(p.sent[0], 1, ok) })
	require.NoError(t, first.Err)
	batch := p.sent[1]
	p.turn(func() { p.reply(batch, 0, "*2\r\n:1\r\n:0\r\n", ok) })
	p.tick(20 * time.Millisecond) // the third was lost before
	cleanup := p.last()
	p.turn(func() { p.reply(batch, 1, "*2\r\n:1\r\n:1\r\n", ok) }) // on two it has voted
	p.turn(func() { p.fail(cleanup, 0, errLost); p.reply(cleanup, 1, one) })
	p.idle()
	require.Equal(t, []Vote{
		{2, Acquire, quorum.Failed, errDown},
		{0, Acquire, quorum.Granted, nil}, {1, Acquire, quorum.Granted, nil},
		{2, Release, quorum.Failed, errDown}, {2, Release, quorum.Failed, errDown}, {2, Acquire, quorum.Failed, errDown},
		{0, Release, quorum.Granted, nil}, {0, Release, quorum.Denied, nil}, {0, Acquire, quorum.Granted, nil},
		{1, Release, quorum.Failed, errTimeout}, {1, Acquire, quorum.Failed, errTimeout}, {2, Release, quorum.Failed, errDown},
		{1, Release, quorum.Granted, nil},
		{0, Release, quorum.Failed, errLost}, {1, Release, quorum.Granted, nil},
	}, reported)

	var s metrics.Stats[int]
	AddStats(p.engine, &s)
	require.EqualValues(t, 5, s.Operations)
	for node, want := range []Votes{
		{quorum.Granted: 3, quorum.Denied: 1, quorum.Failed: 1},
		{quorum.Granted: 3, quorum.Failed: 2},
		{quorum.Failed: 5},
	} {
		require.Equal(t, want, p.engine.Votes(node))
	}
}
