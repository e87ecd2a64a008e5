package histories

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock"
)

// dice decides, for several goroutines, whether user code blocks, and for how long.
type dice struct {
	mu  sync.Mutex
	rng random
}

// throw is a time of seconds, once in so many; else 0.
func (d *dice) throw(oneIn int) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.rng.IntN(oneIn) > 0 {
		return 0
	}
	return time.Second + d.rng.N(3*time.Second)
}

// stall makes the user code of a client block for seconds now and then: hooks and the logger.
// Contexts come with the calls.
func (h *history) stall(cfg *redlock.Config, rng random) *dice {
	d := &dice{rng: rng}
	pause := func(oneIn int) {
		if long := d.throw(oneIn); long > 0 {
			h.pause(long)
		}
	}
	cfg.Hooks.Attempt = func(redlock.Attempt) { pause(60) }
	cfg.Hooks.Acquire = func(redlock.Acquisition) { pause(60) }
	cfg.Hooks.LockLost = func(string, error) { pause(10) }
	cfg.Hooks.Vote = func(redlock.Vote) { pause(2000) }
	node := func(redlock.Node) { pause(10) }
	cfg.Hooks.NodeUp, cfg.Hooks.NodeDown, cfg.Hooks.NodeQuarantined = node, node, node
	cfg.Logger = slog.New(stallingLog(func() { pause(10) }))
	return d
}

type stallingLog func()

func (s stallingLog) Enabled(context.Context, slog.Level) bool  { return true }
func (s stallingLog) Handle(context.Context, slog.Record) error { s(); return nil }
func (s stallingLog) WithAttrs([]slog.Attr) slog.Handler        { return s }
func (s stallingLog) WithGroup(string) slog.Handler             { return s }

// stalling is a context whose Err blocks now and then, while its Done channel is as any other.
// Its caller does not wait for a lock meanwhile.
type stalling struct {
	context.Context
	history *history
	dice    *dice
	process *process    // of a call of Do, which also asks when it has the lock; else nil
	over    atomic.Bool // it blocks no more
}

func (s *stalling) Err() error {
	if d := s.dice.throw(40); d > 0 && !s.over.Load() {
		if s.process != nil {
			defer s.process.give()()
		}
		if w, ok := s.Value(wantOf{}).(*want); ok && w.end() {
			defer w.begin()
		}
		s.history.pause(d)
	}
	return s.Context.Err()
}

// stall has the context of a call block now and then, if the user code of its client does, until it
// is called back.
func (u *caller) stall(ctx context.Context, of *process) (_ context.Context, end func()) {
	if u.dice == nil {
		return ctx, func() {}
	}
	s := &stalling{Context: ctx, history: u.history, dice: u.dice, process: of}
	return s, func() { s.over.Store(true) }
}
