package histories

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/virtual"
)

// suspendedTTL is the TTL of locks on a suspended machine; each suspension is longer.
const suspendedTTL = 10 * time.Second

// shown is the validity of a lock as shown by a call.
type shown interface{ Remaining() time.Duration }

const fencedStep = "fenced TryAcquire"

// steps are calls that return or show validity. Each is prepared, and then run on a machine
// suspended before one of its readings of the clock. A call with its end on another goroutine
// reports this end.
var steps = map[string]func(s *stage, c *redlock.Client, ended func()) (run func() (shown, error)){
	"TryAcquire": func(s *stage, c *redlock.Client, _ func()) func() (shown, error) {
		return func() (shown, error) { return c.TryAcquire(s.ctx, "k", suspendedTTL) }
	},
	fencedStep: func(s *stage, c *redlock.Client, _ func()) func() (shown, error) {
		return func() (shown, error) { return c.TryAcquire(s.ctx, "k", suspendedTTL) }
	},
	"AcquireAll": func(s *stage, c *redlock.Client, _ func()) func() (shown, error) {
		return func() (shown, error) { return c.AcquireAll(s.ctx, suspendedTTL, "k", "other") }
	},
	"Submit acquire": func(_ *stage, c *redlock.Client, ended func()) func() (shown, error) {
		return submitted(c, &redlock.Op{Kind: redlock.OpAcquire, Key: []byte("k"), TTL: suspendedTTL}, ended)
	},
	"Submit extend": func(s *stage, c *redlock.Client, ended func()) func() (shown, error) {
		op := &redlock.Op{Kind: redlock.OpAcquire, Key: []byte("k"), TTL: suspendedTTL}
		_, err := submitted(c, op, func() {})()
		require.NoError(s.T, err)
		op.Kind = redlock.OpExtend
		return submitted(c, op, ended)
	},
	"Extend": func(s *stage, c *redlock.Client, _ func()) func() (shown, error) {
		l := s.take(c, "k", suspendedTTL)
		return func() (shown, error) { return l, l.Extend(s.ctx, suspendedTTL) }
	},
	"Extend by less": func(s *stage, c *redlock.Client, _ func()) func() (shown, error) {
		l := s.take(c, "k", suspendedTTL)
		return func() (shown, error) { return l, l.Extend(s.ctx, suspendedTTL/2) }
	},
	"Extend of a set": func(s *stage, c *redlock.Client, _ func()) func() (shown, error) {
		l, err := c.AcquireAll(s.ctx, suspendedTTL, "k", "other")
		require.NoError(s.T, err)
		return func() (shown, error) { return l, l.Extend(s.ctx, suspendedTTL) }
	},
	"Attach": func(s *stage, c *redlock.Client, _ func()) func() (shown, error) {
		until := time.Now().Add(suspendedTTL)
		token := s.take(s.Client(), "k", suspendedTTL).Token()
		return func() (shown, error) { return c.Attach(s.ctx, "k", token, until) }
	},
	"KeepAlive": func(s *stage, c *redlock.Client, _ func()) func() (shown, error) {
		l := s.take(c, "k", suspendedTTL)
		ctx, stop := l.KeepAlive(s.ctx)
		s.T.Cleanup(stop)
		return func() (shown, error) {
			for end := time.Now().Add(suspendedTTL); time.Now().Before(end); {
				time.Sleep(suspendedTTL / 16)
				if err := ctx.Err(); err != nil {
					return l, err
				}
			}
			return l, ctx.Err()
		}
	},
	"handed over": func(s *stage, c *redlock.Client, ended func()) func() (shown, error) {
		held := s.take(c, "k", suspendedTTL)
		var l redlock.Lock
		var err error
		done := make(chan struct{})
		go func() {
			l, err = c.Acquire(s.ctx, "k", suspendedTTL)
			ended()
			close(done)
		}()
		time.Sleep(promptly)
		return func() (shown, error) {
			_ = held.Release(s.ctx) // or it is over
			<-done
			return l, err
		}
	},
}

func submitted(c *redlock.Client, op *redlock.Op, ended func()) func() (shown, error) {
	done := make(chan struct{}, 1)
	op.Done = func(*redlock.Op) {
		ended()
		done <- struct{}{}
	}
	return func() (shown, error) {
		if err := c.Submit(op); err != nil {
			return op, err
		}
		<-done
		return op, op.Err()
	}
}

// TestSuspendedAtEachStep: a call on a machine suspended beyond a lock's TTL, at any of the call's
// readings of the clock, neither succeeds nor shows validity not given by the nodes.
func TestSuspendedAtEachStep(t *testing.T) {
	for name, prepare := range steps {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for reading, more := int64(1), true; more; reading += 1 + reading/16 {
				var belief string
				behind := int64(0)
				if name == "handed over" {
					behind = 1 // the wait is measured behind the last look at validity
				}
				for range 3 { // a suspension between the end of a call and the look at the nodes is not the call's
					more, belief = suspendedAt(t, reading, behind, name == fencedStep, prepare)
					if belief == "" {
						break
					}
				}
				require.Empty(t, belief)
			}
		})
	}
}

// suspendedAt runs a call on a machine suspended before a reading of its clock, counted from the
// call's start. It returns whether the call came as far, and any validity shown without being so.
// The readings behind its last look at validity can only have it shown as 0.
func suspendedAt(t *testing.T, reading, behind int64, fenced bool, prepare func(*stage, *redlock.Client, func()) func() (shown, error)) (reached bool, belief string) {
	const never = 1 << 32
	virtual.Run(t, 3, func(w *virtual.World) {
		var readings atomic.Int64
		m := w.Machine()
		m.Read = func() {
			if readings.Add(1) == reading {
				m.Skip(2 * suspendedTTL)
				w.Servers.Each(func(server *fakeredis.Server) { server.SetClock(2 * suspendedTTL) })
			}
		}
		readings.Store(never)
		c, _ := w.ClientOn(m, func(c *redlock.Config) { c.Fenced, c.MaxTTL = fenced, suspendedTTL })
		if fenced {
			require.NoError(w.T, c.InitFencing(w.T.Context()))
		}
		require.NoError(w.T, c.Ready(w.T.Context()))
		ended := func() { readings.Add(never) }
		run := prepare(&stage{w, w.T.Context()}, c, ended)
		readings.Store(0)
		l, err := run()
		ended()
		n := readings.Load() % never
		reached = n >= reading
		var left []time.Duration
		for _, server := range w.Servers {
			left = append(left, server.TTL("k"))
		}
		slices.Sort(left)
		if err == nil && left[1] <= 0 && reading <= n-behind {
			belief = fmt.Sprintf("reading %d of %d: no error, and the nodes have the key for %v", reading, n, left)
		} else if r := l.Remaining(); r > 0 && r > left[1]+testkit.Patience {
			belief = fmt.Sprintf("reading %d of %d: shows %v, and the nodes have the key for %v", reading, n, r, left)
		}
	})
	return reached, belief
}
