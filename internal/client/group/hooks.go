package group

import (
	"context"
	"log/slog"
	"time"

	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/quorum"
)

// onVote returns the engine's OnVote, or nil if f is.
func (g *Group) onVote(f func(engine.Kind, int, string, quorum.Outcome, error)) func(engine.Vote) {
	if f == nil {
		return nil
	}
	return func(v engine.Vote) { f(v.Kind, g.Number(v.Node), g.Addr(v.Node), v.Outcome, v.Err) }
}

// onAttempt has f hear the error of the context that has ended an attempt; or it is nil if f is.
func onAttempt(f func(engine.Attempt)) func(engine.Attempt) {
	if f == nil {
		return nil
	}
	return func(a engine.Attempt) {
		a.Err = engine.Asked(a.Ctx, a.Err)
		f(a)
	}
}

// Acquisition is the end of an Acquire.
type Acquisition struct {
	Key        string // the acquired one of several
	Attempts   int
	Waited     time.Duration // with the attempts
	HandedOver bool          // by the last holder, inside the process
	Ended      time.Time
	Err        error
	Ctx        context.Context // of its caller
}

// onPanic logs a panic of a callback or hook.
func (g *Group) onPanic(v any, stack []byte) {
	g.Config.Logger.Error("redlock: a callback panicked", "panic", v, "stack", string(stack))
}

// defaultLogger hands warnings and errors to slog.Default, as it is when they come.
type defaultLogger struct{}

func (defaultLogger) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && slog.Default().Enabled(ctx, l)
}

func (defaultLogger) Handle(ctx context.Context, r slog.Record) error {
	return slog.Default().Handler().Handle(ctx, r)
}

func (defaultLogger) WithAttrs(a []slog.Attr) slog.Handler {
	return slog.Default().Handler().WithAttrs(a)
}
func (defaultLogger) WithGroup(name string) slog.Handler {
	return slog.Default().Handler().WithGroup(name)
}
