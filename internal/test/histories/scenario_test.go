package histories

import (
	"context"
	"net"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/virtual"
)

type scenario struct {
	name  string
	nodes int
	run   func(s *stage)
}

type stage struct {
	*virtual.World
	ctx context.Context
}

// soon bounds calls that must not wait for a TTL, or for ever.
const soon = 2 * time.Second

// promptly bounds calls that wait for some round trips alone.
const promptly = 20 * time.Millisecond

// longTTL is the TTL of locks that do not end meanwhile.
const longTTL = 20 * time.Second

func TestScenarios(t *testing.T) {
	for _, list := range [][]scenario{waits, wakes, turns, gaps, orders, holds, deaths, fences, bursts, answers, choices, many, users, shares, outsiders, wanteds} {
		for _, s := range list {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				virtual.Run(t, s.nodes, func(w *virtual.World) { s.run(&stage{w, w.T.Context()}) })
			})
		}
	}
}

type waiting struct {
	began, ended time.Time
	lock         redlock.Lock
	err          error
	done         chan struct{}
}

// wait begins an Acquire. It has joined the queue when wait returns.
func (s *stage) wait(c *redlock.Client, key string, ttl time.Duration) *waiting {
	return s.waitWith(s.ctx, c, key, ttl)
}

func (s *stage) waitWith(ctx context.Context, c *redlock.Client, key string, ttl time.Duration) *waiting {
	defer time.Sleep(100 * time.Millisecond)
	return s.begin(ctx, c, key, ttl)
}

func (s *stage) begin(ctx context.Context, c *redlock.Client, key string, ttl time.Duration) *waiting {
	return s.call(ctx, func(ctx context.Context) (redlock.Lock, error) { return c.Acquire(ctx, key, ttl) })
}

// waitForSet is wait for several keys.
func (s *stage) waitForSet(c *redlock.Client, keys ...string) *waiting {
	defer time.Sleep(100 * time.Millisecond)
	return s.call(s.ctx, allOf(c, keys...))
}

func (s *stage) within(d time.Duration, c *redlock.Client, key string) error {
	ctx, cancel := context.WithTimeout(s.ctx, d)
	defer cancel()
	_, err := c.Acquire(ctx, key, longTTL)
	return err
}

func (s *stage) call(ctx context.Context, acquire locking) *waiting {
	w := &waiting{began: time.Now(), done: make(chan struct{})}
	ctx, cancel := context.WithTimeout(ctx, longTTL)
	go func() {
		defer cancel()
		w.lock, w.err = acquire(ctx)
		w.ended = time.Now()
		close(w.done)
	}()
	return w
}

func (w *waiting) waits() bool { return !testkit.IsClosed(w.done) }

// inTurn requires that calls have the lock one after the other, each within a bound of the end of
// the last. Each releases it at once.
func (s *stage) inTurn(bound time.Duration, all ...*waiting) {
	s.T.Helper()
	for from := time.Now(); len(all) > 0; from = time.Now() {
		var cases []reflect.SelectCase
		for _, w := range all {
			cases = append(cases, reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(w.done)})
		}
		i, _, _ := reflect.Select(cases)
		w := all[i]
		require.NoError(s.T, w.err)
		require.LessOrEqual(s.T, w.ended.Sub(from), bound, "%d others wait", len(all)-1)
		s.release(w.lock)
		all = slices.Delete(slices.Clone(all), i, i+1)
	}
}

// inOrder requires that calls have the lock on a key one after the other, as they came. Each keeps it for a moment.
func (s *stage) inOrder(key string, all ...*waiting) {
	s.T.Helper()
	for i, w := range all {
		l := s.granted(w)
		require.Equal(s.T, key, l.Key())
		for _, later := range all[i+1:] {
			require.True(s.T, later.waits(), "the caller %d was overtaken", i)
		}
		time.Sleep(time.Millisecond)
		s.release(l)
	}
}

// polling makes a client that may not track keys.
func (s *stage) polling(change ...func(*redlock.Config)) *redlock.Client {
	m := s.Machine()
	m.Wrap = func(c net.Conn) net.Conn { return noPushes{c} }
	c, _ := s.ClientOn(m, change...)
	return c
}

// returns requires that a call returns soon, from now on.
func (s *stage) returns(w *waiting) {
	s.T.Helper()
	from := time.Now()
	<-w.done
	require.LessOrEqual(s.T, w.ended.Sub(from), soon, "%v", w.err)
}

// granted requires that a call has the lock soon.
func (s *stage) granted(w *waiting) redlock.Lock {
	s.T.Helper()
	s.returns(w)
	require.NoError(s.T, w.err)
	return w.lock
}

// take is an Acquire without a long wait.
func (s *stage) take(c *redlock.Client, key string, ttl time.Duration) redlock.Lock {
	s.T.Helper()
	l, err := c.TryAcquire(s.ctx, key, ttl)
	require.NoError(s.T, err)
	return l
}

func (s *stage) release(l redlock.Lock) {
	s.T.Helper()
	require.NoError(s.T, l.Release(s.ctx))
}
