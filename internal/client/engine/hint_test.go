package engine

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/wire/command"
	"github.com/redlock-go/redlock/internal/wire/token"
	"github.com/redlock-go/redlock/quorum"
)

// missed is a wire whose first command, a release, a node could not be given.
func (p *scriptedFleet) missed(op *countedOp, absent quorum.Set) *wire {
	w := newWire(&batch{votes: votes{ledger: &p.engine.ledger, rounds: []round{{absent: absent}}}})
	w.Form = valkey
	w.append(Release, 0, []command.Operand{op.operand()}, 1)
	return w
}

func (p *scriptedFleet) miss(node int, w *wire) { w.hint(node, &w.spans[0], 0, nil) }

// lose is a connection that ends: the node owes nothing from here on.
func (p *scriptedFleet) lose(node int) {
	p.turn(func() {
		p.down |= 1 << node
		for _, s := range p.sent {
			p.fail(s, node, errLost)
		}
	})
}

// revive is a new connection. It returns what was sent on it at once.
func (p *scriptedFleet) revive(node int) []*sentBatch {
	before := len(p.sent)
	p.down &^= 1 << node
	p.turn(func() { p.engine.NodeUp(node) })
	return p.sent[before:]
}

// callOf is the script call that releases the ops' keys.
func callOf(ops ...*countedOp) string {
	words := []string{"EVALSHA", command.ReleaseSHA1, strconv.Itoa(len(ops))}
	for _, op := range ops {
		words = append(words, string(op.Key))
	}
	for _, op := range ops {
		words = append(words, string(op.Token[:]))
	}
	return testkit.Encode(words...)
}

// TestNothingIsHintedWithoutAKey: to a node that denied the acquire, or was never
// sent it, be the release the lock's own or that of an acquire that failed.
func TestNothingIsHintedWithoutAKey(t *testing.T) {
	p := newScripted(t, 5)
	release := func(of *countedOp) {
		op := p.op(Release, string(of.Key))
		op.Token, op.Absent = of.Token, of.Absent
		require.NoError(t, p.engine.Submit(&op.Op))
	}
	p.down = 0b10000
	for _, votes := range [][]string{
		{ok, ok, ok, null},   // won
		{ok, null, null, ok}, // lost
		{null, null, null},   // lost, and the fourth node has not answered
	} {
		p.sent = nil
		acquired := p.submit(Acquire, "key")
		p.turn(func() {
			for node, vote := range votes {
				p.reply(p.sent[0], node, vote)
			}
		})
		for node := range 4 {
			p.lose(node)
		}
		if acquired.Err == nil {
			release(acquired)
		}
		p.idle()
		for node := range 5 {
			handed := p.revive(node)
			if node < len(votes) && votes[node] == null || node == 4 {
				require.Empty(t, handed, "%d %v", node, votes)
				continue
			}
			require.Len(t, handed, 1, "%d %v", node, votes)
			require.Equal(t, callOf(acquired), handed[0].bytes)
			p.turn(func() { p.reply(handed[0], node, one) })
		}
		p.down = 0b10000
	}
}

// TestReleasedAgainAndAgainIsHintedOnce: callers repeat a release while a quorum is
// away. It leaves room for what is released once.
func TestReleasedAgainAndAgainIsHintedOnce(t *testing.T) {
	p := newScripted(t, 3)
	again, once := p.op(Release, "again and again"), p.op(Release, "once")
	for op, times := range map[*countedOp]int{again: 60_000, once: 1} {
		w := p.missed(op, 0)
		for range times {
			p.miss(1, w)
		}
		require.LessOrEqual(t, p.engine.ledger.hints[1].bytes, hintBytes)
	}
	handed := p.revive(1)
	require.Len(t, handed, 1)
	require.Contains(t, []string{callOf(again, once), callOf(once, again)}, handed[0].bytes)
}

// TestLostHandoffIsHintedAgain: a connection that dies at once took nothing, or
// only the first part.
func TestLostHandoffIsHintedAgain(t *testing.T) {
	for _, speaks := range []conn.Form{scripts, valkey, redis} {
		p := newMixed(t, speaks, speaks)
		p.submit(Acquire, "blocker")
		for i := range 3 {
			p.submit(Release, fmt.Sprintf("key-%d", i))
		}
		p.turn(func() { p.reply(p.sent[0], 0, ok); p.reply(p.sent[0], 1, ok) })
		p.lose(0)
		p.sent = nil
		for range 2 {
			handed := p.revive(0)
			require.Len(t, handed, 1)
			for i := range 3 {
				require.Contains(t, handed[0].bytes, fmt.Sprintf("key-%d", i))
			}
			p.lose(0)
			p.sent = nil
		}
		if speaks == scripts {
			continue // one call, which is handed off as a whole
		}
		handed := p.revive(0)
		require.Equal(t, 3, handed[0].batch.Replies)
		p.turn(func() { p.reply(handed[0], 0, ":1\r\n", ":0\r\n") })
		p.lose(0)
		p.sent = nil
		handed = p.revive(0)
		require.Equal(t, 1, handed[0].batch.Replies)
		require.Contains(t, handed[0].bytes, "key-2")
	}
}

// TestHintsAreBounded: the first are kept, whole, and more cost nothing.
func TestHintsAreBounded(t *testing.T) {
	for _, speaks := range []conn.Form{scripts, valkey} {
		p := newMixed(t, speaks)
		e := p.engine
		op := p.op(Release, "")
		var w *wire
		for i := range 8_000 {
			op.Key = fmt.Appendf(nil, "%0200d", i)
			w = p.missed(op, 0)
			p.miss(0, w)
		}
		require.Zero(t, testing.AllocsPerRun(100, func() { p.miss(0, w) }))
		require.InDelta(t, hintBytes, e.ledger.hints[0].bytes, 300)
		handed := p.revive(0)
		next := 0
		for len(handed) > 0 { // piece by piece, each when the last was answered
			require.Len(t, handed, 1)
			first := next
			before := len(p.sent)
			p.turn(func() {
				rest := handed[0].bytes
				for _, s := range handed[0].batch.Owner.(*wire).spans {
					n := s.count
					for range n {
						_, after, found := strings.Cut(rest, fmt.Sprintf("%0200d", next))
						require.True(t, found, next)
						rest = after
						next++
					}
					if speaks == scripts {
						p.reply(handed[0], 0, fmt.Sprintf("*%d\r\n%s", n, strings.Repeat(":1\r\n", n)))
					} else {
						p.reply(handed[0], 0, ":1\r\n")
					}
				}
			})
			require.LessOrEqual(t, next-first, handoffOps)
			handed = p.sent[before:]
		}
		require.InDelta(t, hintBytes/(hintCost+200+token.Size), next, 10)
		p.idle()
	}
}

// TestARefusedReleaseIsOwed: it is handed off again four times a second, and after hours more rarely, on the same
// connection, until the node has answered. Meanwhile the watchdog sleeps.
func TestARefusedReleaseIsOwed(t *testing.T) {
	p := newScripted(t, 1)
	p.clock.Advance(time.Second)
	op := p.submit(Release, "key")
	p.all(p.last(), "-BUSY Redis is busy running a script.\r\n")
	require.Equal(t, ErrNoQuorum, op.Err)
	before := p.engine.Votes(0)
	began, pause := p.clock.Now(), time.Duration(0)
	for pause < 30*time.Second {
		pause = min(max(250*time.Millisecond, p.clock.Now().Sub(began)/256), 30*time.Second)
		sent := len(p.sent)
		p.tick(0)
		p.clock.Advance(pause - 1)
		var next time.Duration
		p.turn(func() { next = p.engine.tick() })
		require.Equal(t, time.Duration(1), next)
		require.False(t, p.engine.nodes.pulse.awake.Load())
		require.Len(t, p.sent, sent, "after less than %v", pause)
		p.tick(1)
		require.Len(t, p.sent, sent+1)
		require.Equal(t, callOf(&countedOp{Op: Op{Key: []byte("key"), Token: op.Token}}), p.last().bytes)
		p.turn(func() { p.reply(p.last(), 0, "-CODE of a later server\r\n") })
	}
	p.tick(mostHintPause)
	sent := len(p.sent)
	p.turn(func() { p.reply(p.last(), 0, zero) })
	for range 3 {
		p.tick(time.Hour)
	}
	require.Len(t, p.sent, sent)
	require.Empty(t, p.engine.ledger.hints[0].all)
	p.idle()
	require.Equal(t, before, p.engine.Votes(0), "the vote was counted when the release was refused")
}

// TestOwedReleasesFollowAnOutage: while a node refuses all releases, one is tried at a time. Once it has done one, of
// these or of a caller, it is sent all others at once, whichever error it was, and however long it lasted.
func TestOwedReleasesFollowAnOutage(t *testing.T) {
	for _, code := range []string{"-NOREPLICAS Not enough good replicas to write.\r\n", "-NOPERM this user has no permissions to run the 'evalsha' command\r\n"} {
		for _, byCaller := range []bool{false, true} {
			p := newScripted(t, 1)
			p.submit(Acquire, "blocker")
			for i := range 300 {
				p.submit(Release, fmt.Sprint(i))
			}
			p.all(p.sent[0], ok)
			p.turn(func() { p.reply(p.last(), 0, code, code, code) })
			for passed := hintPause; passed < time.Minute; passed += hintPause {
				sent := len(p.sent)
				p.tick(hintPause)
				require.Len(t, p.sent, sent+1, "%v %s", passed, code)
				probe := p.last()
				require.Equal(t, 1, strings.Count(probe.bytes, "EVALSHA"))
				require.Contains(t, probe.bytes, command.ReleaseSHA1+"\r\n$1\r\n1\r\n", "of one key")
				p.submit(Acquire, "another")
				p.all(p.last(), ok) // which is no release
				p.turn(func() { p.reply(probe, 0, code) })
				require.Len(t, p.sent, sent+2)
			}
			if byCaller {
				p.submit(Release, "of a caller")
			} else {
				p.tick(hintPause)
			}
			p.all(p.last(), one)
			handed := p.last()
			require.Len(t, handed.batch.Owner.(*wire).spans, 3, code)
			p.turn(func() { p.reply(handed, 0, ":128\r\n", ":128\r\n", ":43\r\n") })
			if byCaller {
				p.tick(hintPause) // since the last one was refused
				p.all(p.last(), one)
			}
			require.Empty(t, p.engine.ledger.hints[0].all)
			p.idle()
		}
	}
}

// TestRefusedHintsLetOthersPass: a release that is always refused, although others are done, has a pause that doubles,
// and delays none of these.
func TestRefusedHintsLetOthersPass(t *testing.T) {
	p := newScripted(t, 1)
	bad, good := p.op(Release, "bad"), p.op(Release, "good")
	p.miss(0, p.missed(bad, 0))
	p.revive(0)
	for _, pause := range []time.Duration{hintPause, 2 * hintPause, 4 * hintPause, 8 * hintPause} {
		require.Equal(t, callOf(bad), p.last().bytes)
		p.turn(func() { p.reply(p.last(), 0, noKey) })
		p.submit(Release, "other")
		p.all(p.last(), one)
		sent := len(p.sent)
		p.tick(pause - 1)
		require.Len(t, p.sent, sent)
		p.tick(1)
	}
	p.turn(func() { p.reply(p.last(), 0, noKey) })
	p.lose(0)
	p.miss(0, p.missed(good, 0))
	handed := p.revive(0)
	require.Len(t, handed, 1, "with a pause")
	require.Equal(t, callOf(good), handed[0].bytes)
	p.turn(func() { p.reply(handed[0], 0, "-ERR once\r\n") })
	p.tick(hintPause)
	require.Equal(t, callOf(good), p.last().bytes)
	p.turn(func() { p.reply(p.last(), 0, one) })
	p.tick(16 * hintPause)
	require.Equal(t, callOf(bad), p.last().bytes)
	p.turn(func() { p.reply(p.last(), 0, one) })
	p.idle()
}

// TestNothingIsOwedAfter an answer: the key is gone, or holds another token, or a value of another type.
func TestNothingIsOwedAfter(t *testing.T) {
	for _, answer := range []string{one, zero, "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"} {
		p := newScripted(t, 1)
		p.submit(Release, "key")
		p.all(p.last(), answer)
		require.Empty(t, p.engine.ledger.hints[0].all, answer)
	}
	p := newScripted(t, 1)
	p.submit(Acquire, "blocker")
	for i := range 3 {
		p.submit(Release, fmt.Sprint(i))
	}
	p.all(p.sent[0], ok)
	p.all(p.last(), "*3\r\n:1\r\n+OK\r\n:1\r\n") // it fits as far as the first
	require.Len(t, p.engine.ledger.hints[0].all, 2)
	for i, x := range p.engine.ledger.hints[0].all {
		require.Equal(t, fmt.Sprint(i+1), x.key)
		require.NotZero(t, x.due, "it would end each connection")
	}
}

// TestHandoffsReuseNoBatch of an operation that was decided in the same sweep and is not complete.
func TestHandoffsReuseNoBatch(t *testing.T) {
	p := newScripted(t, 1)
	for i := range handoffOps + 1 {
		p.miss(0, p.missed(p.op(Release, fmt.Sprint(i)), 0))
	}
	handed := p.revive(0)
	op := p.submit(Acquire, "key")
	sent := p.last()
	p.turn(func() {
		p.reply(sent, 0, ok) // its batch is spare, and the youngest spare is used first
		for _, s := range handed[0].batch.Owner.(*wire).spans {
			p.reply(handed[0], 0, fmt.Sprintf(":%d\r\n", s.count))
		}
	})
	require.Equal(t, 1, op.times)
	require.NoError(t, op.Err)
	require.Equal(t, 1, op.Tally.Count(quorum.Granted))
	require.NotSame(t, sent, p.last())
	p.turn(func() { p.reply(p.last(), 0, one) })
	p.idle()
}

const noKey = "-NOPERM this user has no permissions to access one of the keys used as arguments\r\n"

// TestLostErrandIsHinted: a release that was to be sent again, when the connection
// ended, is made up for like any other.
func TestLostErrandIsHinted(t *testing.T) {
	p := newScripted(t, 1)
	op := p.submit(Release, "key")
	p.turn(func() { p.reply(p.sent[0], 0, noSuch) })
	require.Len(t, p.sent, 2)
	p.lose(0)
	require.Equal(t, ErrNoQuorum, op.Err)
	handed := p.revive(0)
	require.Len(t, handed, 1)
	require.Equal(t, callOf(op), handed[0].bytes)
}

// TestTheQuarantineHearsTheLongestTTL of a batch, whichever comes last, with the drift: that long a key may live by a slow
// clock.
func TestTheQuarantineHearsTheLongestTTL(t *testing.T) {
	p := newScripted(t, 1)
	for i, ttl := range []time.Duration{time.Second, time.Minute, time.Second} {
		p.queue(Acquire, fmt.Sprint(i)).TTL = ttl
	}
	p.turn(func() {})
	require.Len(t, p.sent, 1)
	require.Equal(t, []time.Duration{time.Minute + quorum.Drift(time.Minute)}, p.noted)
}
