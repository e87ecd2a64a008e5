package histories

import (
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/testkit/virtual"
)

// bursts are scenarios of more operations at once than the nodes answer within NodeTimeout. All
// succeed. The nodes work a quarter of the timeout, if there is as much, and then wait for a round
// trip at most.
var bursts = []scenario{
	{"a burst over a slow network at slow nodes", 3, func(s *stage) {
		newPaced(s, 20*time.Millisecond, 200*time.Microsecond).burst(3000)
	}},
	// Nodes starved by the burst are silent. The pause is taken for the round trip, and then the
	// nodes become slower.
	{"a burst in a pause", 3, func(s *stage) {
		p := newPaced(s, 200*time.Microsecond, 10*time.Microsecond)
		for _, node := range s.Nodes {
			link := p.machine.Link(node)
			link.Hold(true, true)
			time.AfterFunc(pause, link.Release)
		}
		p.burst(6000)
		p.each.Store(int64(20 * time.Microsecond))
		p.burst(3000)
	}},
	// A client follows nodes that become slower, and does not stay slow.
	{"bursts at another pace", 3, func(s *stage) {
		p := newPaced(s, 2*time.Millisecond, 0)
		for _, each := range []time.Duration{12, 36, 100, 12} {
			each *= time.Microsecond
			p.each.Store(int64(each))
			p.burst(int(60 * time.Millisecond / each))
		}
	}},
}

const pause = 150 * time.Millisecond // three timeouts

// paced is nodes with a time for each key, and a client of them.
type paced struct {
	*stage
	client  *redlock.Client
	machine *virtual.Machine
	trip    time.Duration // of the network
	each    atomic.Int64  // nanoseconds for a key
}

func newPaced(s *stage, trip, each time.Duration) *paced {
	p := &paced{stage: s, trip: trip}
	p.client, p.machine = s.ClientOn(s.Machine())
	require.NoError(s.T, p.client.Ready(s.ctx))
	for _, node := range s.Nodes {
		p.machine.Link(node).Delay(trip/2, trip/2, 0)
	}
	p.each.Store(int64(each))
	for _, node := range s.Servers {
		node.OnCommand(func(_ int64, args []string) {
			keys := 1
			if strings.HasPrefix(args[0], "EVAL") {
				keys, _ = strconv.Atoi(args[2])
			}
			time.Sleep(time.Duration(keys) * time.Duration(p.each.Load()))
		})
	}
	return p
}

// burst acquires, extends and releases n locks, each time all at once.
func (p *paced) burst(n int) {
	ops := make([]redlock.Op, n)
	done := make(chan error, n)
	for i := range ops {
		ops[i] = redlock.Op{Key: []byte(strconv.Itoa(i)), TTL: longTTL, Done: func(op *redlock.Op) { done <- op.Err() }}
	}
	for _, kind := range []redlock.OpKind{redlock.OpAcquire, redlock.OpExtend, redlock.OpRelease} {
		began := time.Now()
		for i := range ops {
			ops[i].Kind = kind
			require.NoError(p.T, p.client.Submit(&ops[i]))
		}
		for range ops {
			require.NoError(p.T, <-done)
		}
		each := time.Duration(p.each.Load())
		atOnce := min(1024*each, (50*time.Millisecond-p.trip)/4)
		bound := time.Duration(n)*each*(atOnce+p.trip)/atOnce*5/4 + 10*p.trip + pause
		require.Less(p.T, time.Since(began), bound, "%v of %d keys", kind, n)
	}
}
