package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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
			p.ask(2, time.Second)
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
			require.True(t, p.engine.nodes.pulse.awake.Load())
			require.Equal(t, begin != nil, p.engine.armed)
			p.turn(end)
			require.False(t, p.engine.armed)
		})
	}
}
