package redlock_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
)

// handler is a slog.Handler that is a function.
type handler func()

func (handler) Enabled(context.Context, slog.Level) bool    { return true }
func (h handler) Handle(context.Context, slog.Record) error { h(); return nil }
func (h handler) WithAttrs([]slog.Attr) slog.Handler        { return h }
func (h handler) WithGroup(string) slog.Handler             { return h }
func logging(h slog.Handler) func(*redlock.Config) {
	return func(c *redlock.Config) { c.Logger = slog.New(h) }
}
func hooked(set func(*redlock.Hooks)) func(c *redlock.Config) {
	return func(c *redlock.Config) { set(&c.Hooks) }
}

// callbacks are what a client calls besides Done, each set to call f. Attempt
// calls it for the key "bad" alone.
var callbacks = map[string]func(f func()) func(*redlock.Config){
	"Vote": func(f func()) func(*redlock.Config) {
		return hooked(func(h *redlock.Hooks) { h.Vote = func(redlock.Vote) { f() } })
	},
	"Attempt": func(f func()) func(*redlock.Config) {
		return hooked(func(h *redlock.Hooks) {
			h.Attempt = func(a redlock.Attempt) {
				if a.Key == "bad" {
					f()
				}
			}
		})
	},
	"NodeUp": func(f func()) func(*redlock.Config) {
		return hooked(func(h *redlock.Hooks) { h.NodeUp = func(redlock.Node) { f() } })
	},
	"NodeDown": func(f func()) func(*redlock.Config) {
		return hooked(func(h *redlock.Hooks) { h.NodeDown = func(redlock.Node) { f() } })
	},
	"Logger": func(f func()) func(*redlock.Config) { return logging(handler(f)) },
}

// exercise makes a client do everything that it calls something for, and
// requires that all of it goes on.
func (r *rig) exercise(t *testing.T) {
	t.Helper()
	times := 0
	goesOn := func() {
		t.Helper()
		times++
		for i := range 5 {
			pair(t, r.Client, fmt.Sprint("good ", i))
		}
		require.NoError(t, soon(t, "another Done", submitted(t, r.Client, noted(fmt.Sprint("op ", times)))))
		statsOf(t, r.Client)
	}
	goesOn()
	submitted(t, r.Client, noted("bad"))
	goesOn()
	r.servers[0].Down()
	awaitUpNodes(t, r.Client, 2)
	goesOn()
	r.heal(t)
	awaitUpNodes(t, r.Client, 3)
	goesOn()
	start(func() error { // it may wait for the hook, or panic
		_, err := r.TryAcquire(context.Background(), "bad", ttl)
		return err
	})
	goesOn()
}

// TestDefectCallbackPanics: a hook or a Logger that panics harms nothing else,
// from New on.
func TestDefectCallbackPanics(t *testing.T) {
	for name, set := range callbacks {
		t.Run(name, func(t *testing.T) {
			apart(t, func(t *testing.T) {
				var panics atomic.Int64
				r := newBoundRig(t, startN(t, 3), set(func() {
					panics.Add(1)
					panic("of " + name)
				}))
				r.exercise(t)
				require.Positive(t, panics.Load())
				if name == "Attempt" {
					op := &redlock.Op{Kind: redlock.OpRelease, Key: []byte("bad")}
					_ = soon(t, "the Done behind the hook that panics", submitted(t, r.Client, op))
				}
			})
		})
	}
}

// TestDefectCallbackBlocks: one that blocks holds up nothing else.
func TestDefectCallbackBlocks(t *testing.T) {
	for name, set := range callbacks {
		t.Run(name, func(t *testing.T) {
			var armed atomic.Bool
			var blocked atomic.Int64
			release := make(chan struct{})
			r := newBoundRig(t, startN(t, 3), set(func() {
				if armed.Load() {
					blocked.Add(1)
					<-release
				}
			}))
			t.Cleanup(func() { close(release) })
			armed.Store(true)
			r.exercise(t)
			awaitSoon(t, bound, "it was called", func() bool { return blocked.Load() > 0 })
		})
	}
}

// TestDefectDonePanics: a Done that panics is logged with its stack. It harms
// neither the goroutine on which it happens nor the Done of another operation.
func TestDefectDonePanics(t *testing.T) {
	for _, logger := range []string{"Config.Logger", "slog.Default"} {
		for _, away := range []int{0, 3} {
			t.Run(fmt.Sprint(logger, " ", away, " away"), func(t *testing.T) {
				if logger == "slog.Default" && os.Getenv(marked) != "" {
					t.Skip("skipped: clients have a logger there")
				}
				apart(t, func(t *testing.T) {
					var log page
					h := slog.NewTextHandler(&log, nil)
					r := newBoundRig(t, startN(t, 3), impatient, func(c *redlock.Config) {
						if logger == "Config.Logger" {
							c.Logger = slog.New(h)
						} else {
							slog.SetDefault(slog.New(h))
						}
					})
					for _, s := range r.servers[:away] {
						s.Down()
					}
					awaitUpNodes(t, r.Client, 3-away)
					if away == 0 { // all of them in one batch
						for _, s := range r.servers {
							s.Mute()
						}
					}
					var others []<-chan error
					for i := range 6 {
						if i%2 == 0 {
							bad := noted("bad")
							bad.Done = explode
							require.NoError(t, soon(t, "Submit", start(func() error { return r.Submit(bad) })))
						}
						others = append(others, submitted(t, r.Client, noted(fmt.Sprint(i))))
					}
					r.heal(t)
					for _, done := range others {
						err := soon(t, "another Done", done)
						require.True(t, err == nil || away > 0 && isOneOf(err, redlock.ErrNoQuorum), "%v", err)
					}
					awaitUpNodes(t, r.Client, 3)
					pair(t, r.Client, "behind")
					awaitSoon(t, bound, "the log", func() bool {
						text := log.String()
						return strings.Count(text, "level=ERROR") >= 3 && strings.Contains(text, "a Done that explodes") && strings.Contains(text, "redlock_test.explode")
					})
				})
			})
		}
	}
}

// explode is a Done. Its name is to be found in the log.
func explode(*redlock.Op) { panic("a Done that explodes") }
