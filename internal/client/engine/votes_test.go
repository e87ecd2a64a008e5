package engine

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/wire/command"
	"github.com/redlock-go/redlock/quorum"
)

func byText(text string, words ...string) string {
	return testkit.Encode(append([]string{"EVAL", text}, words...)...)
}

// TestNoScriptIsRetriedOnce: the call is sent again, by the script's text, on that node alone; a second NOSCRIPT is a
// failed vote.
func TestNoScriptIsRetriedOnce(t *testing.T) {
	for kind, text := range map[Kind]string{Release: command.ReleaseScript, Extend: command.ExtendScript} {
		p := newScripted(t, 3)
		op := p.submit(kind, "key")
		first := p.sent[0]
		p.all(first, noSuch)
		require.Zero(t, op.times)
		require.Len(t, p.sent, 4)
		require.Equal(t, 1, p.engine.nodes.unanswered.Inside(), "the batch is still needed")
		require.False(t, p.engine.ledger.window.isOpen.Load(), "no node is done with it")
		words := []string{"1", "key", string(op.Token[:])}
		if kind == Extend {
			words = append(words, strconv.FormatInt(op.TTL.Milliseconds(), 10))
		}
		for _, s := range p.sent[1:] {
			require.Equal(t, 1, s.batch.Replies)
			require.Equal(t, byText(text, words...), s.bytes)
		}
		p.turn(func() { p.reply(p.sent[1], 0, one) })
		p.turn(func() { p.reply(p.sent[2], 1, noSuch) })
		require.Zero(t, op.times)
		p.turn(func() { p.fail(p.sent[3], 2, errLost) })
		require.Equal(t, 1, op.times)
		require.Equal(t, ErrNoQuorum, op.Err)
		require.Equal(t, []Failure{{1, op.Failures[0].Err}, {2, errLost}}, op.Failures)
		require.ErrorContains(t, op.Failures[0].Err, "forgetting the script")
		require.Len(t, p.sent, 4)
		p.idle()
	}
}

// TestDoubtedReplies: behind a server's word that all its keys are gone a release counts, an acquire does not, and what can be
// asked twice is asked once more, by a vote.
func TestDoubtedReplies(t *testing.T) {
	for kind, reply := range map[Kind]string{Release: one, Acquire: ok, Extend: one, Look: zero} {
		p := newScripted(t, 3)
		p.doubts = true
		op := p.submit(kind, "key")
		p.all(p.sent[0], reply)
		if kind == Release {
			require.NoError(t, op.Err)
		} else {
			if kind != Acquire {
				require.Zero(t, op.times)
				require.Len(t, p.sent, 4)
				for node, s := range p.sent[1:] {
					require.Equal(t, p.sent[0].bytes, s.bytes)
					require.True(t, s.batch.Votes)
					p.turn(func() { p.reply(s, node, reply) })
				}
			}
			require.Equal(t, ErrNoQuorum, op.Err, kind)
			require.Equal(t, conn.ErrEmptied, op.Failures[0].Err)
		}
		require.Equal(t, 1, op.times)
		p.doubts = false
		if kind == Acquire { // it may have been applied
			p.all(p.last(), one)
		}
		p.idle()
	}
}

// TestMisfits: a reply that does not fit ends the connection and is no vote, also of
// a node without a vote and of a handed-off release. So does a fatal refusal.
func TestMisfits(t *testing.T) {
	for _, c := range []struct {
		speaks      conn.Form
		kind        Kind
		quarantined quorum.Set
		handed      bool
		reply       string
		want        error
	}{
		{scripts, Acquire, 0, false, one, ErrMisfit},
		{scripts, Extend, 1, false, ":1\r\n", ErrMisfit},
		{redis, Extend, 0, false, ":1\r\n", ErrMisfit},
		{valkey, Release, 0, true, ok, ErrMisfit},
		{valkey, Release, 0, true, "-BUSY x\r\n", nil},
		{scripts, Release, 0, true, "-READONLY x\r\n", conn.ErrNotMaster},
		{scripts, Acquire, 0, false, "-MOVED 1 127.0.0.1:7000\r\n", conn.ErrCluster},
	} {
		p := newMixed(t, c.speaks)
		p.quarantined = c.quarantined
		op := p.submit(c.kind, "key")
		if c.handed {
			p.lose(0)
			p.revive(0)
		}
		p.turn(func() { require.ErrorIs(t, p.reply(p.last(), 0, c.reply), c.want, "%v %q", c.kind, c.reply) })
		require.Equal(t, ErrNoQuorum, op.Err)
	}
}

// TestGrants: what a node grants in one piece decides each round as single answers do, in any order of nodes and
// pieces, also where some are denials, and leaves the same tallies and counts.
func TestGrants(t *testing.T) {
	const nodes, n = 5, 7
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var all [2]*batch // the second has single answers
		for i := range all {
			e := New(Config{Clock: new(testkit.Clock), MaxWaiting: n, Timeout: time.Second})
			attach(e, newScripted(t, nodes))
			all[i] = e.ledger.batch()
			for range n {
				op := &Op{Kind: Acquire, TTL: time.Second}
				op.advance(inFlight)
				all[i].add(op)
			}
		}
		var done [nodes]int
		denies := random.IntN(3) // of so many votes
		for range 4 * nodes {
			node := random.IntN(nodes)
			from := done[node]
			to := from + random.IntN(n-from+1)
			done[node] = to
			if to > from && random.IntN(4) < denies {
				to--
				for _, b := range all {
					b.answered(node, to, false, Acquire)
				}
			}
			all[0].granted(node, from, to)
			for i := from; i < to; i++ {
				all[1].answered(node, i, true, Acquire)
			}
			for i := range n {
				require.Equal(t, all[1].rounds[i].op == nil, all[0].rounds[i].op == nil)
			}
			require.Equal(t, all[1].undecided, all[0].undecided)
		}
		for i := range n {
			require.Equal(t, all[1].rounds[i].tally, all[0].rounds[i].tally)
		}
		require.Equal(t, all[1].counters.votes, all[0].counters.votes)
	}
}

// heldLock is a lock that is held until it is not.
type heldLock struct{ held bool }

func (l *heldLock) IsHeld(uint64) bool                              { return l.held }
func (l *heldLock) Repair(uint64, int, clock.Instant) time.Duration { return 0 }

// TestNoExtendAfterARelease: a node that does not know the script is not asked to extend a lock whose release may be on
// its way: a key that stays for a while would stay for longer.
func TestNoExtendAfterARelease(t *testing.T) {
	for _, held := range []bool{true, false} {
		p := newScripted(t, 3)
		lock := &heldLock{true}
		op := p.op(Extend, "key")
		op.Repairer = lock
		require.NoError(t, p.engine.Submit(&op.Op))
		first := p.sent[0]
		p.turn(func() { p.reply(first, 0, one) })
		p.turn(func() { p.reply(first, 1, one) })
		require.NoError(t, op.Err)
		lock.held = held
		p.turn(func() { p.reply(first, 2, noSuch) })
		if !held {
			require.Len(t, p.sent, 1)
			p.idle()
			continue
		}
		require.Len(t, p.sent, 2)
		p.turn(func() { p.reply(p.sent[1], 2, one) })
		p.idle()
	}
}
