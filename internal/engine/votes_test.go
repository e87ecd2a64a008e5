package engine

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/command"
	"github.com/redlock-go/redlock/resp"
)

// TestNoScriptIsRetriedOnce: the script is loaded and the call sent again, on
// that node alone; a second NOSCRIPT is a failed vote.
func TestNoScriptIsRetriedOnce(t *testing.T) {
	for kind, text := range map[Kind]string{Release: command.ReleaseScript, Extend: command.ExtendScript} {
		p := newPuppet(t, 3)
		op := p.submit(kind, "key")
		first := p.sent[0]
		p.turn(func() {
			for node := range 3 {
				p.reply(first, node, noSuch)
			}
		})
		require.Zero(t, op.times)
		require.Len(t, p.sent, 4)
		require.Equal(t, 1, p.engine.unanswered, "the batch is still needed")
		require.False(t, p.engine.window.isOpen.Load(), "no node is done with it")
		load := resp.AppendBulkString([]byte("*3\r\n$6\r\nSCRIPT\r\n$4\r\nLOAD\r\n"), text)
		for _, s := range p.sent[1:] {
			require.Equal(t, 2, s.batch.Replies)
			require.Equal(t, string(load)+first.bytes, s.bytes)
		}
		p.turn(func() { p.reply(p.sent[1], 0, "$1\r\nx\r\n", one) })
		p.turn(func() { p.reply(p.sent[2], 1, "-ERR no\r\n", noSuch) })
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

// TestRetriesOpenTheGate: with four nodes two can rule a quorum out, before one
// has answered.
func TestRetriesOpenTheGate(t *testing.T) {
	p := newPuppet(t, 4)
	op := p.submit(Release, "key")
	first := p.sent[0]
	p.turn(func() { p.reply(first, 0, noSuch); p.reply(first, 1, noSuch) })
	p.turn(func() { p.reply(p.sent[1], 0, "$1\r\nx\r\n", zero) })
	require.False(t, p.engine.window.isOpen.Load())
	p.turn(func() { p.reply(p.sent[2], 1, "$1\r\nx\r\n", zero) })
	require.Equal(t, ErrNotHeld, op.Err)
	require.True(t, p.engine.window.isOpen.Load())
	p.turn(func() { p.reply(first, 2, one); p.reply(first, 3, one) })
	p.idle()
}

// TestMisfitOfALoad: the answer to the load may say no, but must be one.
func TestMisfitOfALoad(t *testing.T) {
	for _, wire := range []string{":1\r\n", ok, one, "_\r\n"} {
		p := newPuppet(t, 1)
		op := p.submit(Release, "key")
		p.turn(func() { p.reply(p.sent[0], 0, noSuch) })
		p.turn(func() { require.ErrorIs(t, p.reply(p.sent[1], 0, wire), errMisfit, "%q", wire) })
		p.turn(func() { p.fail(p.sent[1], 0, errMisfit) })
		require.Equal(t, ErrNoQuorum, op.Err)
		p.idle()
	}
}

// TestNoScriptOfAnExtendNobodyAwaits: it is not sent again once its caller has asked
// for a longer one, which it would undo on that node.
func TestNoScriptOfAnExtendNobodyAwaits(t *testing.T) {
	p := newPuppet(t, 5)
	op := p.submit(Extend, "key")
	batch := p.sent[0]
	for node := range 3 {
		p.turn(func() { p.reply(batch, node, one) })
	}
	require.NoError(t, op.Err)
	p.turn(func() { p.reply(batch, 3, noSuch) })
	require.Len(t, p.sent, 2, "there is no later one yet")
	later := p.submit(Extend, "key")
	p.turn(func() { p.reply(batch, 4, noSuch) })
	require.Len(t, p.sent, 3, "sent again")
	p.turn(func() { p.reply(p.sent[1], 3, "$1\r\nx\r\n", one) })
	for node := range 5 {
		p.turn(func() { p.reply(p.sent[2], node, one) })
	}
	require.NoError(t, later.Err)
	p.idle()
}

// TestNoScriptOfAnAcquire: SET needs no script; the error is one like any other.
func TestNoScriptOfAnAcquire(t *testing.T) {
	p := newPuppet(t, 1)
	op := p.submit(Acquire, "key")
	p.turn(func() { p.reply(p.sent[0], 0, noSuch) })
	require.Equal(t, ErrNoQuorum, op.Err)
}

// TestRetryOutlivesTheTimeout: what a retry was for is over; its replies are
// dropped and the batch is used again.
func TestRetryOutlivesTheTimeout(t *testing.T) {
	p := newPuppet(t, 1)
	op := p.submit(Release, "key")
	p.turn(func() { p.reply(p.sent[0], 0, noSuch) })
	p.tick(20 * time.Millisecond)
	require.Equal(t, ErrNoQuorum, op.Err)
	require.Empty(t, p.engine.free)
	next := p.submit(Release, "key")
	p.turn(func() { p.reply(p.sent[1], 0, "$1\r\nx\r\n", one) })
	require.Equal(t, 1, op.times)
	require.Zero(t, next.times)
	p.turn(func() { p.reply(p.sent[2], 0, one) })
	require.NoError(t, next.Err)
	p.idle()
	require.Len(t, p.engine.free, 2)
}

// TestMisfits: a reply that does not fit closes the connection, and is no vote.
func TestMisfits(t *testing.T) {
	for _, kind := range []Kind{Acquire, Extend, Release} {
		fits := map[string]bool{}
		for _, wire := range []string{ok, null, "*-1\r\n"} {
			fits[wire] = kind == Acquire
		}
		for _, wire := range []string{one, zero, "*1\r\n:1\r\n"} {
			fits[wire] = kind != Acquire
		}
		for _, wire := range []string{
			":1\r\n", ":0\r\n", "+QUEUED\r\n", "+ok\r\n", "$2\r\nOK\r\n", "$0\r\n\r\n", "*0\r\n",
			"*1\r\n:2\r\n", "*1\r\n:-1\r\n", "*1\r\n$1\r\n1\r\n", "*1\r\n$-1\r\n", "*2\r\n:1\r\n:1\r\n", "*1\r\n*1\r\n:1\r\n",
			"#t\r\n", "%0\r\n", "~1\r\n:1\r\n",
		} {
			fits[wire] = false
		}
		for _, wire := range []string{"-ERR x\r\n", "-MISCONF x\r\n", "!3\r\nERR\r\n"} {
			fits[wire] = true
		}
		for wire, fit := range fits {
			p := newPuppet(t, 1)
			op := p.submit(kind, "key")
			var misfit error
			p.turn(func() { misfit = p.reply(p.sent[0], 0, wire) })
			require.Equal(t, 1, op.times, "%q", wire)
			if fit {
				require.NoError(t, misfit, "%q to %s", wire, kind.String())
			} else {
				require.ErrorIs(t, misfit, errMisfit, "%q to %s", wire, kind.String())
				require.Equal(t, ErrNoQuorum, op.Err)
			}
			if strings.HasPrefix(wire, "-") {
				require.Equal(t, ErrNoQuorum, op.Err)
			}
			if op.Err == nil {
				require.Contains(t, []string{ok, one}, wire)
			}
		}
	}
}

// TestMisfitInsideABatch: what came before it counts, and nothing after it.
func TestMisfitInsideABatch(t *testing.T) {
	p := newPuppet(t, 1)
	p.submit(Acquire, "blocker")
	ops := []*outcome{p.submit(Release, "a"), p.submit(Release, "b"), p.submit(Release, "c"), p.submit(Acquire, "d")}
	p.turn(func() { p.reply(p.sent[0], 0, ok) })
	p.turn(func() { require.Error(t, p.reply(p.sent[1], 0, "*3\r\n:1\r\n:5\r\n:1\r\n")) })
	for i, want := range []error{nil, ErrNoQuorum, ErrNoQuorum, ErrNoQuorum} {
		require.Equal(t, 1, ops[i].times)
		require.Equal(t, want, ops[i].Err, "operation %d", i)
	}
}

// TestFatalRefusals: an error reply after which nothing on the connection will be
// answered any better ends it, also inside a script's error.
func TestFatalRefusals(t *testing.T) {
	for wire, cause := range map[string]error{
		"-MOVED 1 127.0.0.1:7000\r\n":                     conn.ErrCluster,
		"-READONLY You can't write against a replica\r\n": conn.ErrNotMaster,
		"-ERR Error running script (call to f_x): @user_script:1: @user_script: 1: -READONLY You can't write\r\n": conn.ErrNotMaster,
		"-NOAUTH Authentication required.\r\n": conn.ErrAuth,
	} {
		for _, kind := range []Kind{Acquire, Extend, Release} {
			p := newPuppet(t, 1)
			op := p.submit(kind, "key")
			p.turn(func() { require.ErrorIs(t, p.reply(p.sent[0], 0, wire), cause, wire) })
			require.Equal(t, ErrNoQuorum, op.Err)
			require.ErrorIs(t, op.Failures[0].Err, cause)
		}
	}
}

// TestExtendWithoutMemory: where SET … IFEQ is refused the script is not.
func TestExtendWithoutMemory(t *testing.T) {
	p := newMixed(t, valkey)
	op := p.submit(Extend, "key")
	p.turn(func() { p.reply(p.sent[0], 0, "-OOM command not allowed when used memory > 'maxmemory'.\r\n") })
	p.turn(func() { p.reply(p.sent[1], 0, "$1\r\nx\r\n", one) })
	require.NoError(t, op.Err)
	require.Equal(t, valkey, p.speaks[0], "it is no matter of the dialect")
	p.idle()
}

// TestRepeatedExtendDoesNotOvertake: of two extends of one lock in a batch the first is
// not sent again, for it would be behind the second; another lock's is.
func TestRepeatedExtendDoesNotOvertake(t *testing.T) {
	p := newPuppet(t, 1)
	first, second, other := p.op(Extend, "key"), p.op(Extend, "key"), p.op(Extend, "other")
	other.Token[1] = 'x' // locks are told apart by the first bytes
	for _, op := range []*outcome{first, other, second} {
		require.NoError(t, p.engine.enqueue(&op.Op))
	}
	p.turn(func() {})
	require.Len(t, p.sent, 1)
	require.Equal(t, 2, p.sent[0].batch.Replies)
	p.turn(func() { p.reply(p.sent[0], 0, noSuch) })
	require.Equal(t, errOvertaken, first.Failures[0].Err)
	require.Len(t, p.sent, 2)
	require.Contains(t, p.sent[1].bytes, "other")
	require.NotContains(t, p.sent[1].bytes, "$3\r\nkey")
	p.turn(func() { p.reply(p.sent[0], 0, one); p.reply(p.sent[1], 0, "$1\r\nx\r\n", one) })
	require.NoError(t, second.Err)
	require.NoError(t, other.Err)
	p.idle()
}
