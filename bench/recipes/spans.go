package recipes

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/redlock-go/redlock"
)

// Spans are hooks that make an OpenTelemetry span of each attempt and of each wait for a lock, below that of the
// caller: Config{Hooks: Spans(otel.Tracer("locks"))}.
func Spans(tracer trace.Tracer) redlock.Hooks {
	span := func(ctx context.Context, name, key string, ended time.Time, took time.Duration, err error, more ...attribute.KeyValue) {
		if ctx == nil { // in the background
			ctx = context.Background()
		}
		_, s := tracer.Start(ctx, name, trace.WithTimestamp(ended.Add(-took)), trace.WithAttributes(attribute.String("lock.key", key)), trace.WithAttributes(more...))
		if err != nil {
			s.SetStatus(codes.Error, err.Error())
		}
		s.End(trace.WithTimestamp(ended))
	}
	return redlock.Hooks{
		Attempt: func(a redlock.Attempt) {
			span(a.Ctx, "lock "+a.Kind.String(), a.Key, a.Ended, a.Duration, a.Err, attribute.Int("lock.votes", a.Granted))
		},
		Acquire: func(a redlock.Acquisition) {
			span(a.Ctx, "lock wait", a.Key, a.Ended, a.Waited, a.Err, attribute.Int("lock.attempts", a.Attempts), attribute.Bool("lock.handed_over", a.HandedOver))
		},
	}
}
