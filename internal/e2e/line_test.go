package e2e

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/testkit"
	"github.com/redlock-go/redlock/internal/testkit/cluster"
)

// TestFirstComeFirstServed: waiters of a process have the lock in the order in which they
// came, without a round trip for each.
func TestFirstComeFirstServed(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		r := cluster.New(t, 3)
		held := cluster.MustAcquire(t, r.Client, "k", ttl)
		const n = 20
		var order []int
		var mu sync.Mutex
		var all sync.WaitGroup
		for i := range n {
			all.Add(1)
			go func() {
				defer all.Done()
				l, err := r.Acquire(t.Context(), "k", ttl)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
				if err := l.Release(t.Context()); err != nil {
					t.Error(err)
				}
			}()
			testkit.Await(t, "in line", func() bool { return r.Stats().InLine == i+1 })
		}
		_, err := r.TryAcquire(t.Context(), "k", ttl)
		require.Equal(t, redlock.ErrTaken, err)
		before := r.Stats().Acquire.Won
		require.NoError(t, held.Release(t.Context()))
		testkit.Join(t, &all)
		for i := range n {
			require.Equal(t, i, order[i])
		}
		s := cluster.Settle(t, r.Client)
		require.EqualValues(t, n, s.HandedOver)
		require.Equal(t, before, s.Acquire.Won, "no round trip")
		require.Zero(t, s.InLine)
		r.AwaitEmpty(t)
	})
}

// TestHandOverExcludes: of many that want a key one has it at a time, whatever they do
// with it: they give up, release twice, extend, keep it alive, leave it to expire.
func TestHandOverExcludes(t *testing.T) {
	for _, off := range []bool{false, true} {
		cluster.Run(t, fmt.Sprint("off ", off), func(t *testing.T) {
			r := cluster.New(t, 3, func(c *redlock.Config) { c.NoHandOver = off })
			var inside, grants atomic.Int64
			var all sync.WaitGroup
			for i := range 16 {
				all.Add(1)
				go func() {
					defer all.Done()
					for j := range 30 {
						ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+(i*7+j*13)%40)*10*time.Millisecond)
						l, err := r.Acquire(ctx, "k", ttl)
						cancel()
						if err != nil {
							continue
						}
						if inside.Add(1) != 1 {
							t.Error("two holders")
						}
						grants.Add(1)
						switch j % 5 {
						case 0:
							_ = l.Extend(t.Context(), ttl)
						case 1:
							_, stop := l.KeepAlive(t.Context())
							defer stop()
						case 2:
							_ = l.Token()
						}
						inside.Add(-1)
						if j%2 == 0 {
							l.ReleaseAsync()
						} else if err := l.Release(t.Context()); err != nil {
							t.Error(err)
						}
						if l.Release(t.Context()) != redlock.ErrNotHeld {
							t.Error("released twice")
						}
					}
				}()
			}
			testkit.Join(t, &all)
			s := cluster.Settle(t, r.Client)
			require.Zero(t, s.InLine)
			require.Equal(t, off, s.HandedOver == 0)
			require.Greater(t, grants.Load(), int64(100))
			r.AwaitEmpty(t)
		})
	}
}

// TestCloseEndsWaits at once.
func TestCloseEndsWaits(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		r := cluster.New(t, 3, func(c *redlock.Config) { c.Retry = redlock.Retry{Min: testkit.Patience, Max: testkit.Patience} })
		cluster.MustAcquire(t, r.Client, "k", ttl)
		var waits []<-chan error
		for i := range 20 {
			waits = append(waits, testkit.Start(func() error {
				_, err := r.Acquire(context.Background(), "k", ttl)
				return err
			}))
			testkit.Await(t, "in line", func() bool { return r.Stats().InLine == i+1 })
		}
		before := r.Stats().Acquire.Denied
		waits = append(waits, testkit.Start(func() error { return errorOf(r.AcquireAll(context.Background(), ttl, "k")) }))
		testkit.Await(t, "refused", func() bool { return r.Stats().Acquire.Denied > before })
		require.NoError(t, r.Close())
		for _, wait := range waits {
			require.Equal(t, redlock.ErrClosed, testkit.Outcome(t, "a wait", wait))
		}
	})
}

// TestFirstThatLeaves wakes the next, for whatever reason it leaves: its context ends, or
// user code panics when it is about to ask the nodes.
func TestFirstThatLeaves(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		var broken atomic.Bool
		r := cluster.New(t, 3, func(c *redlock.Config) {
			c.Rand = readerFunc(func(p []byte) (int, error) {
				if broken.CompareAndSwap(true, false) {
					panic("no randomness")
				}
				return rand.Read(p)
			})
		}).NoPushes()
		for _, s := range r.Servers {
			s.Set("k", "another's", 0)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var waits []<-chan error
		for i := range 3 {
			own := t.Context()
			if i == 0 {
				own = ctx
			}
			waits = append(waits, testkit.Start(func() error {
				l, err := r.Acquire(own, "k", ttl)
				if err == nil {
					err = l.Release(context.Background())
				}
				return err
			}))
			testkit.Await(t, "in line", func() bool { return r.Stats().InLine == i+1 })
		}
		cancel()
		require.ErrorIs(t, testkit.Outcome(t, "the first", waits[0]), context.Canceled)
		broken.Store(true)
		require.ErrorContains(t, testkit.Outcome(t, "the second", waits[1]), "no randomness")
		for _, s := range r.Servers {
			s.Del("k")
		}
		require.NoError(t, testkit.Outcome(t, "the third", waits[2]))
		require.Zero(t, r.Stats().InLine)
	})
}

// readerFunc is a Config.Rand.
type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// TestWhatIsNotPassedOn: a lock whose token is known, or of which too little is left, goes
// back to the nodes.
func TestWhatIsNotPassedOn(t *testing.T) {
	for name, c := range map[string]struct {
		held time.Duration
		use  func(l redlock.Lock)
		want uint64
	}{
		"as it is":     {ttl, func(redlock.Lock) {}, 1},
		"token told":   {ttl, func(l redlock.Lock) { _ = l.Token() }, 0},
		"too little":   {ttl / 2, func(redlock.Lock) {}, 0},
		"more":         {2 * ttl, func(redlock.Lock) {}, 0},
		"kept alive":   {ttl, func(l redlock.Lock) { _, _ = l.KeepAlive(context.Background()) }, 1},
		"was extended": {ttl / 2, func(l redlock.Lock) { _ = l.Extend(context.Background(), ttl) }, 1},
	} {
		cluster.Run(t, name, func(t *testing.T) {
			r := cluster.New(t, 3)
			held := cluster.MustAcquire(t, r.Client, "k", c.held)
			c.use(held)
			next := testkit.InBackground(func() (redlock.Lock, error) { return r.Acquire(t.Context(), "k", ttl) })
			testkit.Await(t, "in line", func() bool { return r.Stats().InLine == 1 })
			require.NoError(t, held.Release(t.Context()))
			got := testkit.Get(t, next)
			require.NoError(t, got.Err)
			require.Equal(t, c.want, r.Stats().HandedOver)
			require.Greater(t, got.Value.Remaining(), ttl/8*7-time.Second)
			require.Equal(t, redlock.ErrNotHeld, held.Extend(t.Context(), ttl))
			require.Zero(t, held.Remaining())
			require.NoError(t, got.Value.Release(t.Context()))
		})
	}
}

// TestReleaseBesideRelease: of two releases of a lock one passes it on. The other must not
// delete the key of the next holder, whose token is the same.
func TestReleaseBesideRelease(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		r := cluster.New(t, 3)
		held := cluster.MustAcquire(t, r.Client, "k", ttl)
		var next <-chan testkit.Result[redlock.Lock]
		var once sync.Once
		ctx := callingContext{t.Context(), func() {
			once.Do(func() {
				next = testkit.InBackground(func() (redlock.Lock, error) { return r.Acquire(t.Context(), "k", ttl) })
				testkit.Await(t, "in line", func() bool { return r.Stats().InLine == 1 })
				held.ReleaseAsync()
			})
		}}
		require.Equal(t, redlock.ErrNotHeld, held.Release(ctx))
		got := testkit.Get(t, next)
		require.NoError(t, got.Err)
		require.EqualValues(t, 1, r.Stats().HandedOver)
		require.Equal(t, 3, r.Holders("k"))
		require.NoError(t, got.Value.Release(t.Context()))
	})
}

// TestNextIsWoken although the holder, of which the line knows, does not just release: it
// shortens the lock and leaves it to expire, or a hook blocks its Release.
func TestNextIsWoken(t *testing.T) {
	for name, give := range map[string]func(redlock.Lock) error{
		"shortened": func(l redlock.Lock) error { return l.Extend(context.Background(), 20*time.Millisecond) },
		"blocked":   func(l redlock.Lock) error { return l.Release(context.Background()) },
	} {
		cluster.Run(t, name, func(t *testing.T) {
			served := make(chan struct{})
			r := cluster.New(t, 3, func(c *redlock.Config) {
				c.NoHandOver = true
				c.Hooks.Attempt = func(a redlock.Attempt) {
					if a.Kind == redlock.OpRelease && !testkit.IsClosed(served) {
						<-served
					}
				}
			})
			for _, s := range r.Servers {
				s.Set("k", "another's", 0)
			}
			var waits []<-chan testkit.Result[redlock.Lock]
			for i := range 2 {
				waits = append(waits, testkit.InBackground(func() (redlock.Lock, error) { return r.Acquire(t.Context(), "k", ttl) }))
				testkit.Await(t, "in line", func() bool { return r.Stats().InLine == i+1 })
			}
			for _, s := range r.Servers {
				s.Del("k")
			}
			first := testkit.Get(t, waits[0])
			require.NoError(t, first.Err)
			given := testkit.Start(func() error { return give(first.Value) })
			defer func() { require.NoError(t, testkit.Outcome(t, name, given)) }()
			defer close(served)
			second := testkit.Get(t, waits[1])
			require.NoError(t, second.Err)
		})
	}
}

// TestNoHandOverBehindClose: once the client is closed Release passes no lock on: a caller
// whose hook still runs could not give it back.
func TestNoHandOverBehindClose(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		asked, goOn := make(chan struct{}), make(chan struct{})
		var blocks atomic.Bool
		r := cluster.New(t, 3, func(c *redlock.Config) {
			c.Hooks.Attempt = func(a redlock.Attempt) {
				if a.Kind == redlock.OpAcquire && blocks.CompareAndSwap(true, false) {
					asked <- struct{}{}
					<-goOn
				}
			}
		}).NoPushes()
		held := cluster.MustAcquire(t, r.Client, "k", ttl)
		next := testkit.InBackground(func() (redlock.Lock, error) { return r.Acquire(t.Context(), "k", ttl) })
		testkit.Await(t, "in line", func() bool { return r.Stats().InLine == 1 })
		blocks.Store(true)
		testkit.Get(t, asked)
		require.NoError(t, r.Close())
		require.Equal(t, redlock.ErrClosed, held.Release(t.Context()))
		close(goOn)
		require.Equal(t, redlock.ErrClosed, testkit.Get(t, next).Err)
	})
}

// TestOthersHaveTheirTurn: another process has the lock although a line passes it on without
// end, whether nodes tell that it is free or not.
func TestOthersHaveTheirTurn(t *testing.T) {
	for _, told := range []bool{true, false} {
		cluster.Run(t, fmt.Sprint("told ", told), func(t *testing.T) {
			slow := func(c *redlock.Config) {
				c.Retry = redlock.Retry{Min: 10 * time.Millisecond, Max: 50 * time.Millisecond}
			}
			r := cluster.New(t, 3, slow)
			if !told {
				r.NoPushes() // the other process has to meet a gap
			}
			var nodes []string
			for _, n := range r.Nodes() {
				nodes = append(nodes, n.Addr)
			}
			other := cluster.Connect(t, nodes, slow)
			ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience/2)
			defer cancel()
			var line sync.WaitGroup
			for range 4 {
				line.Add(1)
				go func() {
					defer line.Done()
					for ctx.Err() == nil {
						if l, err := r.Acquire(ctx, "k", ttl); err == nil {
							time.Sleep(5 * time.Millisecond) // what the lock is held for
							_ = l.Release(t.Context())
						}
					}
				}()
			}
			for range 3 {
				before := r.Stats().HandedOver
				testkit.Await(t, "passed on", func() bool { return r.Stats().HandedOver > before })
				l, err := other.Acquire(ctx, "k", ttl)
				require.NoError(t, err)
				require.NoError(t, l.Release(t.Context()))
			}
			cancel()
			testkit.Join(t, &line)
		})
	}
}
