package group

import (
	"context"
	"log/slog"

	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/quorum"
)

// onVote returns the engine's OnVote, or nil if f is.
func (g *Group) onVote(f func(engine.Kind, int, string, quorum.Outcome, error)) func(int, engine.Kind, quorum.Outcome, error) {
	if f == nil {
		return nil
	}
	return func(node int, kind engine.Kind, o quorum.Outcome, err error) {
		f(kind, g.Number(node), g.Addr(node), o, err)
	}
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
