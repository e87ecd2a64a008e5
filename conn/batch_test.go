package conn

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/testkit"
	"github.com/redlock-go/redlock/internal/testkit/scripted"
)

func tagsOf(n int) []string {
	tags := make([]string, n)
	for i := range tags {
		tags[i] = fmt.Sprint("tag-", i)
	}
	return tags
}

func TestSendToReachesOneNode(t *testing.T) {
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		r := newUpFleet(t, portable, 3)
		all, one := r.send("all"), r.sendTo(1, "one")
		r.wires[1].Expect(string(all.Buf) + string(one.Buf))
		r.wires[1].Send(echoes("all", "one"))
		r.awaitDone(one)
		assert.Zero(t, all.doneCalls)
		for _, node := range []int{0, 2} {
			r.wires[node].Expect(string(all.Buf))
			r.wires[node].Send(echoes("all"))
		}
		r.awaitDone(all)
		r.works() // and nothing was in between on the others
	})
}

// consumed is how many bytes of the replies to l a node has taken in.
func (r *testFleet) consumed(node int, l *ledger) int {
	return len(echoes(l.tags[:l.nodes[node].replies]...)) + r.nodes[node].w - r.nodes[node].r
}

func TestRepliesArriveInPieces(t *testing.T) {
	tags := []string{"a", "", strings.Repeat("b", 30), "c\r\nd"}
	whole := echoes(tags...)
	var cuts [][]int
	for at := 1; at < len(whole); at++ {
		cuts = append(cuts, []int{at})
	}
	bytewise := make([]int, len(whole)-1)
	for i := range bytewise {
		bytewise[i] = i + 1
	}
	cuts = append(cuts, bytewise, nil)
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		r := newUpFleet(t, portable, 1)
		for _, cut := range cuts {
			l := r.send(tags...)
			r.wires[0].Expect(string(l.Buf))
			from := 0
			for _, to := range append(cut, len(whole)) {
				r.wires[0].Send(whole[from:to])
				r.until("for a piece to be read", func() bool { return l.doneCalls > 0 || r.consumed(0, l) == to })
				from = to
			}
			r.awaitDone(l)
			require.NoError(t, l.errOf(0))
		}
	})
}

func TestRepliesLargerThanTheReadBufferInTotal(t *testing.T) {
	tags := make([]string, 200)
	for i := range tags {
		tags[i] = strings.Repeat(string(rune('a'+i%26)), 1+i*17%1000)
	}
	require.Greater(t, len(echoes(tags...)), 4*readBuffer)
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		r := newUpFleet(t, portable, 2)
		l := r.send(tags...)
		r.meanwhile(func() {
			for _, w := range r.wires {
				w.Expect(string(l.Buf))
				w.Send(echoes(tags...))
			}
		})
		r.awaitDone(l)
		assert.NoError(t, l.errOf(0))
		assert.NoError(t, l.errOf(1))
	})
}

func TestDownNodesFailAtOnce(t *testing.T) {
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		r := newUpFleet(t, portable, 3)
		r.peers[1].Stop()
		r.lose(1)
		l := r.send("x")
		assert.ErrorIs(t, l.errOf(1), ErrNotSent)
		assert.Zero(t, l.doneCalls, "the others have not answered")
		one := r.sendTo(1, "y")
		assert.ErrorIs(t, one.errOf(1), ErrNotSent)
		assert.Equal(t, 1, one.doneCalls)
		for _, node := range []int{0, 2} {
			r.wires[node].Expect(string(l.Buf))
			r.wires[node].Send(echoes("x"))
		}
		r.awaitDone(l)
		for node := range 3 {
			r.do(func() { assert.Equal(t, node != 1, r.Fault(node) == nil) })
			assert.Equal(t, r.peers[node].Addr, r.Node(node).Addr)
		}
		r.peers[1].Start(t)
		r.up()
		r.works()
	})
}

func TestSendBeforeAnyNodeIsUp(t *testing.T) {
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		silent := func(p *scripted.Server) {
			p.Greeting = func(int, string) scripted.Steps { return scripted.Steps{scripted.Mute} }
		}
		r := newTestFleet(t, portable, scripted.NewN(t, 2, silent))
		l := r.send("x")
		assert.Equal(t, 1, l.doneCalls)
		for node := range 2 {
			assert.ErrorIs(t, l.errOf(node), ErrDown)
			assert.ErrorIs(t, l.errOf(node), ErrNotSent)
		}
	})
}
