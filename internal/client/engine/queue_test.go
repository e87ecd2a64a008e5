package engine

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestQueue compares it with a slice.
func TestQueue(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 3))
	for range 150 {
		q := queue{limit: 1 + rng.IntN(12)}
		var model, first []*Op // first: renewals
		closed := false
		ops := make([]*Op, 20)
		for i := range ops {
			ops[i] = &Op{Kind: Acquire, Key: make([]byte, 1+rng.IntN(9))}
		}
		for range 100 {
			op := ops[rng.IntN(len(ops))]
			in := slices.Contains(model, op) || slices.Contains(first, op)
			switch rng.IntN(9) {
			case 0, 1, 2, 3:
				if in {
					continue
				}
				op.Kind, op.Ends = Acquire, CallsBack
				switch rng.IntN(8) {
				case 0:
					op.Kind, op.Ends = Release, cleansUp
				case 1:
					op.Kind = Release
				}
				var want error
				switch {
				case op.Ends == cleansUp:
				case closed:
					want = ErrClosed
				case op.Kind != Release && len(model)+len(first) >= q.limit:
					want = ErrBusy
				}
				op.begin(0)
				var l list
				l.push(op)
				err, _ := q.push(l, nil)
				require.Equal(t, want, err, "seed %d", seed)
				if want == nil {
					model = append(model, op)
				}
			case 4, 5:
				if slices.Contains(first, op) {
					continue
				}
				require.Equal(t, in, q.remove(op), "seed %d", seed)
				if i := slices.Index(model, op); i >= 0 {
					model = slices.Delete(model, i, i+1)
				}
			case 6:
				most, bytes := 1+rng.IntN(6), 1+rng.IntN(30)
				var want []*Op
				for left := bytes; len(first)+len(model) > 0 && len(want) < most && left > 0; {
					from := &model
					if len(first) > 0 {
						from = &first
					}
					want = append(want, (*from)[0])
					left -= len((*from)[0].Key)
					*from = (*from)[1:]
				}
				taken := q.take(most, bytes, true)
				var got []*Op
				for op := taken.first; op != nil; op = op.next {
					require.EqualValues(t, sending, op.state.Load()&phaseMask)
					got = append(got, op)
				}
				require.Equal(t, len(want), taken.n)
				require.True(t, slices.Equal(want, got), "seed %d", seed)
				for _, op := range got {
					require.False(t, q.remove(op), "it was taken")
				}
				var held list
				var back []*Op
				for _, op := range got {
					if rng.IntN(2) == 0 {
						held.push(op)
						back = append(back, op)
					}
				}
				q.putBack(held)
				model = append(back, model...)
			case 7:
				if rng.IntN(20) == 0 {
					q.end(true)
					closed = true
				}
			case 8:
				if in {
					continue
				}
				var l list
				op.begin(0)
				op.Ends = Prompt
				l.push(op)
				if err, _ := q.push(l, nil); closed {
					require.Equal(t, ErrClosed, err)
				} else {
					require.NoError(t, err)
					first = append(first, op)
				}
			}
			require.EqualValues(t, len(model)+len(first), q.size.Load())
			var forth, back []*Op
			for op := q.ops.first; op != nil; op = op.next {
				require.EqualValues(t, queued, op.state.Load()&phaseMask)
				forth = append(forth, op)
			}
			for op := q.ops.last; op != nil; op = op.prev {
				back = append(back, op)
			}
			slices.Reverse(back)
			require.True(t, slices.Equal(model, forth) && slices.Equal(model, back), "seed %d: the chain is broken", seed)
		}
	}
}

// TestTheEndOfAcquiresEndsNoRelease: the acquire of another caller, sent along with a release, is refused alone.
func TestTheEndOfAcquiresEndsNoRelease(t *testing.T) {
	for name, begin := range map[string]func(p *scriptedFleet, release *Call, along *Call) error{
		"a caller": func(p *scriptedFleet, release, along *Call) error {
			go func() { // as the reader
				for sent := false; !sent; runtime.Gosched() {
					p.engine.lock.Lock()
					sent = len(p.sent) > 0
					if sent {
						p.reply(p.sent[0], 0, one)
					}
					p.engine.turn(func() {})
				}
			}()
			return p.engine.Do(release, along)
		},
		"no caller": func(p *scriptedFleet, release, along *Call) error {
			var l list
			l.push(&release.Op)
			err := p.engine.queueReleases(l, along, false)
			p.engine.Drive()
			p.turn(func() { p.reply(p.last(), 0, one) })
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newScripted(t, 1)
			release, err := p.engine.Call(Release, "key", 0)
			require.NoError(t, err)
			along, err := p.engine.Call(Acquire, "key", time.Second)
			require.NoError(t, err)
			p.engine.Ending()
			require.NoError(t, begin(p, release, along))
			require.Len(t, along.done, 1)
			require.Equal(t, ErrClosed, along.Err)
			require.Len(t, p.sent, 1)
			require.Contains(t, p.sent[0].bytes, "EVALSHA")
			require.NotContains(t, p.sent[0].bytes, "SET")
			p.idle()
		})
	}
}
