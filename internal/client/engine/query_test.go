package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/rules/fencing"
	"github.com/redlock-go/redlock/internal/wire/command"
)

// TestQueryThatEndsAConnection: its caller learns it at once, and nothing refers to it when it
// is used again.
func TestQueryThatEndsAConnection(t *testing.T) {
	p := newScripted(t, 1)
	q := p.ask(0, time.Second)
	p.turn(func() { require.Error(t, p.reply(p.sent[0], 0, "-READONLY it is a replica\r\n")) })
	require.Len(t, q.Answered(), 1)
	require.Error(t, q.Err)
	require.Empty(t, p.engine.queries.asked)
	q.Free()
	p.idle()
}

// TestQueriesOfAnUnknownScript: each is sent again as a whole, by the text of the script, once, on its connection alone, in
// their order, and not for a caller whose time is up.
func TestQueriesOfAnUnknownScript(t *testing.T) {
	for last, err := range map[string]bool{"*1\r\n:7\r\n": false, noSuch: false, "": true} {
		p := newScripted(t, 1)
		var all []*Query
		var want []string
		for _, member := range []string{"first", "second"} {
			q := p.engine.Query(0, time.Second)
			q.Buf = command.AppendMember(q.Buf, "set", []byte(member), "read")
			q.Buf, q.Replies = command.AppendMember(q.Buf, "set", []byte(member), "show"), 2
			p.engine.Ask(q)
			all = append(all, q)
			want = append(want, byText(fencing.MemberScript, "1", "set", "read", member)+byText(fencing.MemberScript, "1", "set", "show", member))
		}
		if last == "" {
			p.tick(time.Second)
		}
		p.turn(func() {
			for _, s := range p.sent[:2] {
				p.reply(s, 0, noSuch, noSuch)
			}
		})
		for i, s := range p.sent[2:] {
			require.Equal(t, want[i], s.bytes)
			require.Empty(t, all[i].Answered())
			p.turn(func() { p.reply(s, 0, "*1\r\n:7\r\n", last) })
		}
		for _, q := range all {
			require.Len(t, q.Answered(), 1)
			require.Equal(t, err, IsTimeout(q.Err))
			if !err {
				require.Len(t, q.Said, 2)
				require.Equal(t, last == noSuch, q.Said[1].Code == "NOSCRIPT")
				require.Len(t, p.sent, 4)
			} else {
				require.Len(t, p.sent, 2)
			}
			q.Free()
		}
		p.idle()
	}
}

// TestAgainOnTheSameConnection: a query for one connection of a node is sent on no other, also where
// the node lacks its script.
func TestAgainOnTheSameConnection(t *testing.T) {
	for reconnects := range uint64(2) {
		p := newScripted(t, 1)
		q := p.engine.Query(0, time.Second)
		q.Connection = 1
		q.Buf, q.Replies = command.AppendMember(q.Buf, "set", []byte("me"), "notice"), 1
		p.engine.Ask(q)
		p.turn(func() {
			p.reply(p.sent[0], 0, noSuch)
			p.reconnects = reconnects
		})
		require.Len(t, q.Answered(), int(reconnects))
		require.Len(t, p.sent, 2-int(reconnects))
		if reconnects > 0 {
			require.Equal(t, errReconnected, q.Err)
		} else {
			p.turn(func() { p.reply(p.sent[1], 0, "*1\r\n:7\r\n") })
		}
		q.Free()
		p.idle()
	}
}

// TestQueriesBehindASilentNode: a query that must wait for others to be answered ends when
// the node has been silent for its timeout, and not before, however many there are.
func TestQueriesBehindASilentNode(t *testing.T) {
	const n, timeout = 3 * maxReplies, 20 * time.Millisecond
	p := newScripted(t, 2)
	var all []*Query
	for range n {
		all = append(all, p.ask(1, timeout))
	}
	require.Len(t, p.sent, maxReplies)
	ended := func() (n int) {
		for _, q := range all {
			if len(q.Answered()) > 0 {
				n++
			}
		}
		return n
	}
	p.tick(timeout / 2)
	p.turn(func() { p.reply(p.sent[0], 1, one) })
	p.tick(timeout / 2)
	require.Equal(t, 1, ended(), "it has answered since")
	p.tick(timeout / 2)
	require.Equal(t, n, ended())
	require.True(t, IsTimeout(all[n-1].Err))
	all = append(all, p.ask(1, timeout))
	p.tick(timeout)
	require.Equal(t, n+1, ended())
	for _, s := range p.sent {
		p.turn(func() { p.fail(s, 1, conn.ErrStalled) })
	}
	for _, q := range all {
		q.Free()
	}
	require.Zero(t, p.engine.queries.owed[1]+p.engine.queries.behind)
	p.idle()
}

// TestQueriesOfANodeThatIsDown: they end at once, a bounded number in each turn.
func TestQueriesOfANodeThatIsDown(t *testing.T) {
	p := newScripted(t, 1)
	p.down = 1
	p.engine.lock.Lock() // so they are left to the next turn
	for range 3 * scanWaiting {
		defer p.ask(0, time.Hour).Free()
	}
	p.engine.flush()
	require.Equal(t, 2*scanWaiting, p.engine.queries.behind)
	p.engine.lock.Unlock()
	p.tick(0)
	p.tick(0)
	require.Zero(t, p.engine.queries.behind)
	p.idle()
}
