package waiting

import (
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/client/engine"
)

// TestTurnOfOneThatLeaves: a caller that leaves its choice while it is given a turn reports the end of this turn. Else
// no waiter of the process would act for the key any more.
func TestTurnOfOneThatLeaves(t *testing.T) {
	retry, _ := Retry{}.Check()
	l := New(Config{Env: engine.Env{Clock: clock.New(), Nodes: []string{"a"}, Ring: func() {}}, Retry: retry})
	for range 50_000 {
		c := &Choice{of: l, end: func() {}, refs: 1}
		p := &place{l.waiter("k", nil), c, 0, make(chan struct{}, 1)}
		p.place, c.places = p, []*place{p}
		p.stand(Ended{})
		o := &Chooser{choice: c, bell: NewBell()}
		c.list = []*Chooser{o}
		c.addIdle(1)
		var stepped sync.WaitGroup
		stepped.Go(func() { p.step() })
		runtime.Gosched()
		o.Leave()
		stepped.Wait()
		require.False(t, p.line.busy)
		p.Leave()
	}
}
