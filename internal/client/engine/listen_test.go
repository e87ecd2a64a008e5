package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/quorum"
)

// TestListenersHearAtOnce: while callers wait for pushes, or for the answer to a query, the
// reader is armed, also where only stragglers are out, which the watchdog would read with its
// next tick.
func TestListenersHearAtOnce(t *testing.T) {
	for name, begin := range map[string]func(p *scriptedFleet) (end func()){
		"none": nil,
		"listener": func(p *scriptedFleet) func() {
			p.engine.Listen(1)
			return func() { p.engine.Listen(-1) }
		},
		"query": func(p *scriptedFleet) func() {
			q := p.engine.Query(2, time.Second)
			q.Buf, q.Replies = append(q.Buf, "x"...), 1
			p.engine.Ask(q)
			sent := p.last()
			return func() { p.reply(sent, 2, one) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newScripted(t, 3)
			end := func() {}
			if begin != nil {
				end = begin(p)
			}
			p.submit(Release, "key")
			p.turn(func() {
				p.reply(p.last(), 0, one)
				p.reply(p.last(), 1, one)
			})
			require.True(t, p.engine.nodes.pulse.awake)
			require.Equal(t, begin != nil, p.engine.armed)
			p.turn(end)
			require.False(t, p.engine.armed)
		})
	}
}

// keys is an Observer of keys.
type keys struct {
	unobserved
	heard []string
}

func (k *keys) KeyChanged(nodes quorum.Set, key []byte, own bool) {
	k.heard = append(k.heard, fmt.Sprintf("%s %03b %v", key, nodes, own))
}

// TestObserveReleases hears of each release that has ended, won or not, and of those that the
// engine itself asks for, with the nodes that may have had the key.
func TestObserveReleases(t *testing.T) {
	p := newScripted(t, 3)
	var k keys
	p.engine.rounds.observer = &k
	all := func(wire string) { p.all(p.last(), wire) }
	o := p.op(Release, "own")
	o.Absent = 0b010
	require.NoError(t, p.engine.Submit(&o.Op))
	require.Empty(t, k.heard)
	all(one)
	require.Equal(t, []string{"own 101 true"}, k.heard)

	p.submit(Release, "lost")
	all(zero)
	require.Equal(t, "lost 111 true", k.heard[1])

	won := p.submit(Acquire, "given up")
	all(ok)
	require.Len(t, k.heard, 2, "this is no release")
	p.engine.Abandon(&won.Op)
	p.turn(func() {})
	all(one)
	require.Equal(t, []string{"own 101 true", "lost 111 true", "given up 111 true"}, k.heard)
	p.idle()
}
