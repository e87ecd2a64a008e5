package fleet

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/scripted"
)

func tagsOf(n int) []string {
	tags := make([]string, n)
	for i := range tags {
		tags[i] = fmt.Sprint("tag-", i)
	}
	return tags
}

// consumed is how many bytes of the replies to l a node has taken in.
func (r *testFleet) consumed(node int, l *ledger) int {
	return len(echoes(l.tags[:l.nodes[node].replies]...)) + r.nodes[node].w - r.nodes[node].r
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

func TestSendBeforeAnyNodeIsUp(t *testing.T) {
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		silent := func(p *scripted.Server) {
			p.Greeting = func(int, string) scripted.Steps { return scripted.Steps{scripted.Mute} }
		}
		r := newTestFleet(t, portable, scripted.NewN(t, 2, silent))
		l := r.send("x")
		assert.Equal(t, 1, l.doneCalls)
		for node := range 2 {
			assert.ErrorIs(t, l.errOf(node), conn.ErrDown)
			assert.ErrorIs(t, l.errOf(node), conn.ErrNotSent)
		}
	})
}
