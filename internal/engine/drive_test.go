package engine

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNobodyIsLeftBehind: whoever submits when the driver has looked at the
// queue for the last time, and still has the role, relies on the driver to look
// once more. This holds for one that has come with Submit, for the reader and
// the watchdog, and for a dialler.
func TestNobodyIsLeftBehind(t *testing.T) {
	for name, drive := range map[string]func(p *puppet){
		"submitter": func(p *puppet) { p.submit(Release, "first") },
		"turn": func(p *puppet) {
			require.NoError(t, p.engine.enqueue(&p.op(Release, "first").Op))
			p.turn(func() {})
		},
		"dialler": func(p *puppet) {
			p.engine.DriverLock().Lock()
			p.submit(Release, "first")
			p.engine.DriverLock().Unlock()
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPuppet(t, 1)
			p.engine.window.size = 2 // open also when a batch is out
			var late *outcome
			p.onArm = func() { late = p.submit(Release, "late") }
			drive(p)
			require.NotNil(t, late)
			require.Zero(t, p.engine.queue.size.Load())
			require.EqualValues(t, inFlight, late.state.Load()&phaseMask)
			require.Contains(t, p.last().bytes, "late")
		})
	}
}

// TestResultsComeBeforeReuse: a driver that finds settled operations which
// nobody has completed, as after a panic, completes them before it uses the
// batch again that their results are in.
func TestResultsComeBeforeReuse(t *testing.T) {
	p := newPuppet(t, 1)
	won := p.submit(Acquire, "won")
	e := p.engine
	e.driver.Lock()
	p.reply(p.sent[0], 0, ok)
	require.Len(t, e.free, 1)
	require.NoError(t, e.enqueue(&p.op(Release, "next").Op))
	e.flush()
	e.driver.Unlock()
	p.callBack()
	require.Equal(t, 1, won.times)
	require.NoError(t, won.Err)
	require.Equal(t, 1, won.Tally.Granted())
	require.Same(t, p.sent[0].batch, p.sent[1].batch, "the batch was not used again")
}
