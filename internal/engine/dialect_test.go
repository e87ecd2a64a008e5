package engine

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/command"
)

var (
	scripts = conn.Form(0)
	valkey  = conn.Form(command.DelIfEq | command.SetIfEq)
	redis   = conn.Form(command.DelEx | command.SetIfEq)
)

// newMixed is a puppet of which each node speaks one of the dialects.
func newMixed(t *testing.T, speaks ...conn.Form) *puppet {
	p := newPuppet(t, len(speaks))
	p.speaks = speaks
	return p
}

// TestMixedFleet: one batch, written once for each dialect; the votes of all
// nodes count together.
func TestMixedFleet(t *testing.T) {
	p := newMixed(t, valkey, scripts, redis, scripts, valkey)
	yes := map[conn.Form][2]string{scripts: {one, one}, valkey: {":1\r\n", ok}, redis: {":1\r\n", "_\r\n"}}
	for i, kind := range []Kind{Release, Extend} {
		op := p.submit(kind, "key")
		require.Len(t, p.sent, 3)
		for j, want := range []string{"DELIFEQ", "EVALSHA", "DELEX"} {
			if kind == Extend && j != 1 {
				want = "IFEQ"
			}
			require.Contains(t, p.sent[j].bytes, want)
		}
		p.turn(func() {
			for node, d := range p.speaks {
				for _, s := range p.sent {
					if s.batch.Form == d {
						p.reply(s, node, yes[d][i])
					}
				}
			}
		})
		require.NoError(t, op.Err)
		if kind == Extend { // node 2 has lost the key
			require.Equal(t, 1, op.Tally.Denied())
		}
		p.idle()
		p.sent = nil
	}
	// With one dialect less there is one encoding less, and the buffers stay.
	p.speaks = []conn.Form{valkey, valkey, valkey, valkey, valkey}
	op := p.submit(Release, "key")
	require.Len(t, p.sent, 1)
	p.turn(func() {
		for node := range 5 {
			p.reply(p.sent[0], node, ":0\r\n")
		}
	})
	require.Equal(t, ErrNotHeld, op.Err)
	p.idle()
}

// TestNativeCommandsAreNotMerged: a reply each, in wire order.
func TestNativeCommandsAreNotMerged(t *testing.T) {
	p := newMixed(t, redis)
	p.submit(Acquire, "blocker")
	a, b, c := p.submit(Release, "a"), p.submit(Release, "b"), p.submit(Extend, "c")
	p.turn(func() { p.reply(p.sent[0], 0, ok) })
	require.Equal(t, 3, p.sent[1].batch.Replies)
	p.turn(func() { p.reply(p.sent[1], 0, ":1\r\n", ":0\r\n", null) })
	require.NoError(t, a.Err)
	require.Equal(t, ErrNotHeld, b.Err)
	require.Equal(t, ErrNotHeld, c.Err)
	p.idle()
}

// TestNativeCommandRefused: a node that refuses what it seemed to understand is
// asked by script, at once and from then on, for that kind of operation only.
func TestNativeCommandRefused(t *testing.T) {
	for _, refusal := range []string{
		"-NOPERM User x has no permissions to run the 'delex' command\r\n",
		"-ERR unknown command 'DELIFEQ', with args beginning with: 'key'\r\n",
		"-ERR syntax error\r\n",
	} {
		for _, native := range []conn.Form{valkey, redis} {
			for kind, sha := range map[Kind]string{Release: command.ReleaseSHA1, Extend: command.ExtendSHA1} {
				p := newMixed(t, native, native, native)
				op := p.submit(kind, "key")
				p.turn(func() { p.reply(p.sent[0], 1, refusal) })
				require.Zero(t, op.times)
				retry := p.sent[1]
				require.Equal(t, 2, retry.batch.Replies)
				call := retry.bytes[strings.Index(retry.bytes, "EVALSHA"):]
				want := "EVALSHA\r\n$40\r\n" + sha + "\r\n$1\r\n1\r\n$3\r\nkey\r\n$22\r\n" + string(op.Token[:]) + "\r\n"
				if kind == Extend {
					want += "$4\r\n1000\r\n"
				}
				require.Equal(t, want, call)
				p.turn(func() { p.reply(retry, 1, "$40\r\n"+sha+"\r\n", one) })
				p.turn(func() { p.fail(p.sent[0], 0, errLost) })
				p.turn(func() { p.reply(p.sent[0], 2, map[Kind]string{Release: ":1\r\n", Extend: ok}[kind]) })
				require.NoError(t, op.Err)
				p.idle()

				p.sent = nil
				p.submit(kind, "key")
				require.Len(t, p.sent, 2)
				for _, s := range p.sent {
					require.Equal(t, s.next[1] == 0, strings.Contains(s.bytes, sha), "only node 1 has unlearned it")
				}
			}
		}
	}
}

// TestScriptRefusedToo: with nothing left to try the vote is failed, for the
// reason that came last.
func TestScriptRefusedToo(t *testing.T) {
	p := newMixed(t, valkey)
	op := p.submit(Release, "key")
	p.turn(func() { p.reply(p.sent[0], 0, "-NOPERM x\r\n") })
	p.turn(func() {
		p.reply(p.sent[1], 0, "-NOPERM no scripts\r\n", "-NOPERM User x has no permissions to run the 'evalsha' command\r\n")
	})
	require.Equal(t, ErrNoQuorum, op.Err)
	require.ErrorContains(t, op.Failures[0].Err, "evalsha")
	p.idle()
}

// TestOtherErrorsOfNativeCommands: they say nothing of the command.
func TestOtherErrorsOfNativeCommands(t *testing.T) {
	p := newMixed(t, valkey)
	op := p.submit(Release, "key")
	p.turn(func() { p.reply(p.sent[0], 0, "-MISCONF disk\r\n") })
	require.Equal(t, ErrNoQuorum, op.Err)
	require.Equal(t, valkey, p.speaks[0])
	require.Len(t, p.sent, 1)
	p.idle()
}

// TestForbiddenKeyUnlearnsNothing: the command works, and where the user may run
// no scripts it is all there is.
func TestForbiddenKeyUnlearnsNothing(t *testing.T) {
	for _, text := range []string{
		"NOPERM this user has no permissions to access one of the keys used as arguments",
		"NOPERM No permissions to access a key",
	} {
		for _, kind := range []Kind{Release, Extend} {
			p := newMixed(t, valkey)
			op := p.submit(kind, "key")
			p.turn(func() { p.reply(p.sent[0], 0, "-"+text+"\r\n") })
			require.Equal(t, ErrNoQuorum, op.Err)
			require.ErrorIs(t, op.Failures[0].Err, conn.ErrForbidden)
			require.Equal(t, valkey, p.speaks[0])
			require.Len(t, p.sent, 1, "asked again by script")
			p.idle()
		}
	}
}

// TestNativeMisfits: a reply of the other form's kind does not fit.
func TestNativeMisfits(t *testing.T) {
	for kind, replies := range map[Kind][]string{
		Release: {ok, null, one, ":2\r\n", ":-1\r\n", "#t\r\n", "+1\r\n"},
		Extend:  {":1\r\n", one, "+1\r\n", "#t\r\n", "$2\r\nOK\r\n"},
		Acquire: {":1\r\n", one},
	} {
		for _, wire := range replies {
			p := newMixed(t, redis)
			op := p.submit(kind, "key")
			var misfit error
			p.turn(func() { misfit = p.reply(p.sent[0], 0, wire) })
			require.ErrorIs(t, misfit, errMisfit, "%q", wire)
			require.Equal(t, ErrNoQuorum, op.Err)
		}
	}
}

// TestGuardedNodesHaveNoVote: they are asked like all the others; what they say
// to an acquire or an extend does not count, and a release frees the key all the
// same. The vote is withdrawn for what was sent while it was.
func TestGuardedNodesHaveNoVote(t *testing.T) {
	p := newPuppet(t, 3)
	p.guarded = 0b011
	op := p.submit(Acquire, "key")
	require.Equal(t, ErrNoQuorum, op.Err)
	require.Equal(t, []Failure{{0, conn.ErrQuarantined}, {1, conn.ErrQuarantined}}, op.Failures)
	require.Empty(t, p.sent, "no node can have changed that")
	for _, c := range []struct {
		kind       Kind
		yes, no    string
		won, taken error
	}{
		{Extend, one, zero, ErrNoQuorum, ErrNoQuorum},
		{Release, one, zero, nil, ErrNotHeld},
	} {
		for wire, want := range map[string]error{c.yes: c.won, c.no: c.taken} {
			p.sent = nil
			op := p.submit(c.kind, "key")
			p.guarded = 0
			p.turn(func() {
				for node := range 3 {
					p.reply(p.sent[0], node, wire)
				}
			})
			require.Equal(t, want, op.Err, "%v %q", c.kind, wire)
			if c.kind != Release {
				require.Equal(t, Failure{0, conn.ErrQuarantined}, op.Failures[0])
			}
			for _, s := range p.sent[1:] { // the release after a failed acquire
				p.turn(func() {
					for node := range 3 {
						p.reply(s, node, zero)
					}
				})
			}
			p.idle()
			p.guarded = 0b011
		}
	}
	p.guarded = 0b001 // a minority: the others decide
	p.sent = nil
	op = p.submit(Acquire, "key")
	p.turn(func() {
		for node := range 3 {
			p.reply(p.sent[0], node, ok)
		}
	})
	require.NoError(t, op.Err)
	require.Equal(t, 2, op.Tally.Granted())
	p.idle()
}

// TestMisfitOfAGuardedNode: without a vote it still has to make sense.
func TestMisfitOfAGuardedNode(t *testing.T) {
	p := newPuppet(t, 1)
	p.guarded = 1
	p.submit(Extend, "key")
	p.turn(func() { require.ErrorIs(t, p.reply(p.sent[0], 0, ":1\r\n"), errMisfit) })
}
