package e2e

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// handler is a slog.Handler that is a function.
type handler func()

func (handler) Enabled(context.Context, slog.Level) bool    { return true }
func (h handler) Handle(context.Context, slog.Record) error { h(); return nil }
func (h handler) WithAttrs([]slog.Attr) slog.Handler        { return h }
func (h handler) WithGroup(string) slog.Handler             { return h }

// callbacks are the functions called by a client besides Done. Each is set to call f; Attempt calls
// it for the key "bad" alone.
var callbacks = map[string]func(c *redlock.Config, f func()){
	"Vote":     func(c *redlock.Config, f func()) { c.Hooks.Vote = func(redlock.Vote) { f() } },
	"NodeUp":   func(c *redlock.Config, f func()) { c.Hooks.NodeUp = func(redlock.Node) { f() } },
	"NodeDown": func(c *redlock.Config, f func()) { c.Hooks.NodeDown = func(redlock.Node) { f() } },
	"Logger":   func(c *redlock.Config, f func()) { c.Logger = slog.New(handler(f)) },
	"Attempt": func(c *redlock.Config, f func()) {
		c.Hooks.Attempt = func(a redlock.Attempt) {
			if a.Key == "bad" {
				f()
			}
		}
	},
}

// acquireOp is an operation whose result is ignored.
func acquireOp(key string) *redlock.Op {
	return &redlock.Op{Kind: redlock.OpAcquire, Key: []byte(key), TTL: ttl, Done: func(*redlock.Op) {}}
}

// callEachCallback makes a client do everything with a callback, and requires that calls,
// operations and Stats go on.
func callEachCallback(t *testing.T, r *cluster.Cluster) {
	t.Helper()
	times := 0
	nextRuns := func() {
		t.Helper()
		times++
		for i := range 5 {
			live(t, r.Client, fmt.Sprint("good ", i))
		}
		op := cluster.Begin(t, r.Client, acquireOp(fmt.Sprint("op ", times)))
		require.NoError(t, testkit.Outcome(t, "another Done", op))
		cluster.Stats(t, r.Client)
	}
	nextRuns()
	cluster.Begin(t, r.Client, acquireOp("bad"))
	nextRuns()
	r.Servers[0].Down()
	cluster.AwaitNodesUp(t, r.Client, 2)
	nextRuns()
	r.Heal(t)
	cluster.AwaitNodesUp(t, r.Client, 3)
	nextRuns()
	testkit.Start(func() error { // it may wait for the hook, or panic
		_, err := r.TryAcquire(context.Background(), "bad", ttl)
		return err
	})
	nextRuns()
}

// TestCallbackMayPanic: a hook or a Logger that panics harms nothing else, from
// New on.
func TestCallbackMayPanic(t *testing.T) {
	testkit.Apart(t, func(t *testing.T) {
		for name, set := range callbacks {
			t.Run(name, func(t *testing.T) {
				var panics atomic.Int64
				r := cluster.New(t, 3, func(c *redlock.Config) {
					set(c, func() {
						panics.Add(1)
						panic("of " + name)
					})
				})
				callEachCallback(t, r)
				require.Positive(t, panics.Load())
				if name == "Attempt" {
					op := &redlock.Op{Kind: redlock.OpRelease, Key: []byte("bad")}
					_ = testkit.Outcome(t, "the Done behind the hook that panics", cluster.Begin(t, r.Client, op))
				}
			})
		}
	})
}

// TestCallbackMayBlock: one that blocks holds up nothing else. It blocks a few times, since the
// client needs some milliseconds to go on after each.
func TestCallbackMayBlock(t *testing.T) {
	for name, set := range callbacks {
		t.Run(name, func(t *testing.T) {
			var armed atomic.Bool
			var blocked atomic.Int64
			unblock := make(chan struct{})
			r := cluster.New(t, 3, func(c *redlock.Config) {
				set(c, func() {
					if armed.Load() && blocked.Add(1) <= 5 {
						<-unblock
					}
				})
			})
			t.Cleanup(func() { close(unblock) })
			armed.Store(true)
			callEachCallback(t, r)
			testkit.Await(t, "the callback", func() bool { return blocked.Load() > 0 })
		})
	}
}

// panickingDone is a Done. Its name must be found in the log.
func panickingDone(*redlock.Op) { panic("a Done that panics") }

// TestDoneMayPanic: a Done that panics is logged with its stack. It harms neither
// its goroutine nor the Done of another operation of its batch.
func TestDoneMayPanic(t *testing.T) {
	run := func(t *testing.T, away int, setLogger func(*redlock.Config, *slog.Logger)) {
		var log testkit.LogSink
		r := cluster.New(t, 3, cluster.DefaultTimeouts, func(c *redlock.Config) { setLogger(c, log.Logger(slog.LevelInfo)) })
		r.Servers[:away].Down()
		cluster.AwaitNodesUp(t, r.Client, 3-away)
		if away == 0 { // all of them in one batch
			r.Servers.Mute()
		}
		var others []<-chan error
		for i := range 6 {
			if i%2 == 0 {
				bad := acquireOp("bad")
				bad.Done = panickingDone
				require.NoError(t, testkit.Try(t, "Submit", func() error { return r.Submit(bad) }))
			}
			others = append(others, cluster.Begin(t, r.Client, acquireOp(fmt.Sprint(i))))
		}
		r.Heal(t)
		for _, done := range others {
			err := testkit.Outcome(t, "another Done", done)
			require.True(t, err == nil || away > 0 && testkit.IsAny(err, redlock.ErrNoQuorum), "%v", err)
		}
		cluster.AwaitNodesUp(t, r.Client, 3)
		live(t, r.Client, "behind")
		testkit.Await(t, "three panics in the log", func() bool {
			text := log.String()
			return strings.Count(text, "level=ERROR") >= 3 && strings.Contains(text, "a Done that panics") && strings.Contains(text, "e2e.panickingDone")
		})
	}
	testkit.Apart(t, func(t *testing.T) {
		for _, away := range []int{0, 3} {
			t.Run(fmt.Sprint("Config.Logger, ", away, " of 3 away"), func(t *testing.T) {
				run(t, away, func(c *redlock.Config, l *slog.Logger) { c.Logger = l })
			})
		}
		t.Run("slog.Default", func(t *testing.T) {
			run(t, 0, func(c *redlock.Config, l *slog.Logger) {
				c.Logger = nil
				slog.SetDefault(l)
			})
		})
	})
}

// TestReportMayEndItsGoroutine: a Logger ends its goroutine, as t.Fatal does, while it reports a
// panic. The client goes on, and can be closed.
func TestReportMayEndItsGoroutine(t *testing.T) {
	testkit.Apart(t, func(t *testing.T) {
		var ended atomic.Int64
		r := cluster.New(t, 3, func(c *redlock.Config) {
			c.Logger = slog.New(handler(func() {
				ended.Add(1)
				runtime.Goexit()
			}))
		})
		const bad = 10
		for range bad {
			op := acquireOp("bad")
			op.Done = panickingDone
			require.NoError(t, r.Submit(op))
			require.NoError(t, testkit.Outcome(t, "another Done", cluster.Begin(t, r.Client, acquireOp(rand.Text()))))
			live(t, r.Client, "good")
		}
		testkit.Await(t, "the report of each panic", func() bool { return ended.Load() >= bad })
		require.NoError(t, testkit.Try(t, "Close", r.Close))
		testkit.Await(t, "no goroutine left", func() bool { return testkit.Goroutines() == "" })
	})
}
