package engine

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/quorum"
)

// TestReasons: what each mix of votes is called, and whether a release follows.
// One letter for each node: g granted, d denied, e error reply, r refused before the
// command was executed, x connection lost, u not sent, t no answer in time.
func TestReasons(t *testing.T) {
	for _, c := range []struct {
		kind    Kind
		votes   string
		late    bool
		want    error
		cleanUp bool
	}{
		{Acquire, "ggt", false, nil, false},
		{Acquire, "ggg", false, nil, false},
		{Acquire, "dgg", false, nil, false},
		{Acquire, "ggt", true, ErrExpired, true},
		{Acquire, "ddt", false, ErrTaken, true},  // the third is waited for, but not for long
		{Acquire, "ddd", false, ErrTaken, false}, // the third came in the same wave
		{Acquire, "gdd", false, ErrSplit, true},
		{Acquire, "ddg", false, ErrSplit, true}, // two denials are waited for a third vote
		{Acquire, "ddx", false, ErrTaken, true},
		{Acquire, "gdx", false, ErrSplit, true},
		{Acquire, "udd", false, ErrTaken, false},
		{Acquire, "due", false, ErrNoQuorum, true}, // so did this one
		{Acquire, "dur", false, ErrNoQuorum, false},
		{Acquire, "rrr", false, ErrNoQuorum, false},
		{Acquire, "ttt", false, ErrNoQuorum, true},
		{Acquire, "gxx", false, ErrNoQuorum, true},
		{Acquire, "xxx", false, ErrNoQuorum, true}, // they may have it all the same
		{Acquire, "gtt", false, ErrNoQuorum, true},
		{Extend, "gg", false, nil, false},
		{Extend, "gdg", false, nil, false},
		{Extend, "ggt", true, ErrExpired, false},
		{Extend, "ddg", false, ErrNotHeld, false},
		{Extend, "gdx", false, ErrNoQuorum, false},
		{Extend, "dee", false, ErrNoQuorum, false},
		{Extend, "ddgg", false, ErrNotHeld, false},
		{Release, "gg", false, nil, false},
		{Release, "gg", true, nil, false},
		{Release, "dd", false, ErrNotHeld, false},
		{Release, "dxg", false, ErrNoQuorum, false},
		{Release, "ttg", false, ErrNoQuorum, false},
	} {
		t.Run(strings.Join([]string{c.kind.String(), c.votes}, " "), func(t *testing.T) {
			p := newScripted(t, max(3, len(c.votes)))
			for node, vote := range c.votes {
				if vote == 'u' {
					p.down |= 1 << node
				}
			}
			op := p.submit(c.kind, "key")
			s := p.sent[0]
			if c.late {
				p.clock.Advance(time.Second)
			}
			granted, denied := ok, null
			if c.kind != Acquire {
				granted, denied = one, zero
			}
			p.turn(func() {
				for node, vote := range c.votes {
					switch vote {
					case 'g':
						p.reply(s, node, granted)
					case 'd':
						p.reply(s, node, denied)
					case 'e':
						p.reply(s, node, "-ERR of a proxy, perhaps behind the command\r\n")
					case 'r':
						p.reply(s, node, noKey)
					case 'x':
						p.fail(s, node, errLost)
					}
				}
			})
			if op.times == 0 {
				p.tick(19 * time.Millisecond)
				require.Equal(t, c.votes == "ddt", op.times == 1, "too early")
				p.tick(time.Millisecond)
			}
			require.Equal(t, 1, op.times)
			require.Equal(t, c.want, op.Err)
			require.Len(t, op.Failures, map[bool]int{true: op.Tally.Count(quorum.Failed)}[c.want != nil && c.want != ErrExpired])
			for _, f := range op.Failures {
				require.Error(t, f.Err)
			}
			p.tick(time.Second) // ends what is out
			p.sent = append(p.sent[:1], slices.DeleteFunc(p.sent[1:], func(s *sentBatch) bool {
				w, is := s.batch.Owner.(*wire)
				return is && w.batch.to != 0
			})...)
			if len(p.sent) == 1 {
				require.False(t, c.cleanUp, "no release followed")
				return
			}
			require.True(t, c.cleanUp, "a release followed")
			require.Len(t, p.sent, 2)
			require.Contains(t, p.sent[1].bytes, "EVALSHA")
			require.Contains(t, p.sent[1].bytes, op.Token.String())
		})
	}
}

// TestTheCleanupHasItsOwnKey: a caller may write to its key as soon as the
// operation is its own again.
func TestTheCleanupHasItsOwnKey(t *testing.T) {
	p := newScripted(t, 1)
	op := p.submit(Acquire, "mine")
	require.True(t, p.engine.Cancel(&op.Op))
	copy(op.Key, "????")
	p.turn(func() { p.reply(p.sent[0], 0, ok) })
	require.Contains(t, p.last().bytes, "mine")
	require.NotContains(t, p.last().bytes, "????")
}

// TestCausesAreEachRounds: why a node failed one operation is not why it failed the
// other, though they came in one batch.
func TestCausesAreEachRounds(t *testing.T) {
	p := newScripted(t, 1)
	ops := p.batch(Acquire, "memory", "disk")
	p.turn(func() { p.reply(p.sent[0], 0, "-OOM command not allowed\r\n", "-MISCONF Errors writing\r\n") })
	require.ErrorContains(t, ops[0].Failures[0].Err, "OOM")
	require.ErrorContains(t, ops[1].Failures[0].Err, "MISCONF")
}

// TestThePatientEndToo: the longer timeouts of a batch are kept after the shortest.
func TestThePatientEndToo(t *testing.T) {
	p := newScripted(t, 1)
	p.engine.timeout = 0 // follows from the TTL
	var ops []*countedOp
	for i := range 3 {
		op := p.op(Acquire, "key")
		op.TTL = time.Duration(i+1) * 100 * time.Millisecond
		require.NoError(t, p.engine.queueOne(&op.Op))
		ops = append(ops, op)
	}
	p.turn(func() {})
	require.Len(t, p.sent, 1)
	for i, op := range ops {
		require.Zero(t, op.times, "operation %d ends too early", i)
		p.tick(5 * time.Millisecond)
		require.Equal(t, 1, op.times, "operation %d does not end", i)
	}
}

// TestValidityCountsFromSubmit, not from when the operation leaves the queue: to wait
// there shortens validity. The same goes for how long it took. It counts for the TTL that
// the nodes are sent.
func TestValidityCountsFromSubmit(t *testing.T) {
	const queued = 10 * time.Millisecond
	p := newScripted(t, 1)
	p.submit(Release, "blocker")
	until := clock.Instant(quorum.Until(time.Duration(p.clock.Now()), time.Second))
	op := p.op(Acquire, "key")
	op.TTL += 999 * time.Microsecond // on the wire it is whole milliseconds, rounded down
	require.NoError(t, p.engine.Submit(&op.Op))
	p.clock.Advance(queued)
	p.turn(func() { p.reply(p.sent[0], 0, one) })
	require.Len(t, p.sent, 2)
	p.turn(func() { p.reply(p.sent[1], 0, ok) })
	require.NoError(t, op.Err)
	require.Equal(t, until, op.Until)
	require.Equal(t, queued, op.Took(p.clock.Now()))
	require.Zero(t, op.Trip, "the wait in the queue is no trip")
}
