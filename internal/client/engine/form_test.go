package engine

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/wire/command"
	"github.com/redlock-go/redlock/quorum"
)

var (
	scripts = conn.Form(0)
	valkey  = conn.Form(command.DelIfEq)
	redis   = conn.Form(command.DelEx)
)

// newMixed is a scriptedFleet of which each node speaks one of the forms.
func newMixed(t *testing.T, speaks ...conn.Form) *scriptedFleet {
	p := newScripted(t, len(speaks))
	p.speaks = speaks
	return p
}

// TestNativeCommandRefused: a node that refuses what it seemed to understand is
// asked by script, at once and from then on.
func TestNativeCommandRefused(t *testing.T) {
	for _, refusal := range []string{
		"-NOPERM User x has no permissions to run the 'delex' command\r\n",
		"-ERR unknown command 'DELIFEQ', with args beginning with: 'key'\r\n",
		"-ERR syntax error\r\n",
	} {
		for _, native := range []conn.Form{valkey, redis} {
			const sha = command.ReleaseSHA1
			p := newMixed(t, native, native, native)
			op := p.submit(Release, "key")
			p.turn(func() { p.reply(p.sent[0], 1, refusal) })
			require.Zero(t, op.times)
			retry := p.sent[1]
			require.Equal(t, byText(command.ReleaseScript, "1", "key", string(op.Token[:])), retry.bytes)
			p.turn(func() { p.reply(retry, 1, one) })
			p.turn(func() { p.fail(p.sent[0], 0, errLost) })
			p.turn(func() { p.reply(p.sent[0], 2, ":1\r\n") })
			require.NoError(t, op.Err)
			p.idle()

			p.sent = nil
			p.submit(Release, "key")
			require.Len(t, p.sent, 2)
			for _, s := range p.sent {
				require.Equal(t, s.next[1] == 0, strings.Contains(s.bytes, sha), "only node 1 has unlearned it")
			}
		}
	}
}

// TestQuarantinedNodesHaveNoVote: they are sent all commands. Their replies to an
// acquire or an extend do not count; a release frees the key. Commands that were sent
// in the quarantine get no vote after it either.
func TestQuarantinedNodesHaveNoVote(t *testing.T) {
	p := newScripted(t, 3)
	p.quarantined = 0b011
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
			p.quarantined = 0
			p.all(p.sent[0], wire)
			require.Equal(t, want, op.Err, "%v %q", c.kind, wire)
			if c.kind != Release {
				require.Equal(t, Failure{0, conn.ErrQuarantined}, op.Failures[0])
			}
			for _, s := range p.sent[1:] { // the release after a failed acquire
				p.all(s, zero)
			}
			p.idle()
			p.quarantined = 0b011
		}
	}
	p.quarantined = 0b001 // a minority: the others decide
	p.sent = nil
	op = p.submit(Acquire, "key")
	p.all(p.sent[0], ok)
	require.NoError(t, op.Err)
	require.Equal(t, 2, op.Tally.Count(quorum.Granted))
	p.idle()
}
