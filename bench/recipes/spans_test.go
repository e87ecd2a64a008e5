package recipes

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/conn/conntest"
)

// TestSpans: a caller's trace shows its attempts and its wait, below its own span.
func TestSpans(t *testing.T) {
	ended := tracetest.NewSpanRecorder()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(ended)).Tracer("test")
	client := connect(t, redlock.Config{Nodes: conntest.Start(t, 3).Addrs(), Hooks: Spans(tracer)})
	ctx, parent := tracer.Start(t.Context(), "request")
	require.NoError(t, client.Do(ctx, "orders:42", 10*time.Second, func(ctx context.Context) error {
		_, err := client.TryAcquire(ctx, "orders:42", time.Second)
		require.ErrorIs(t, err, redlock.ErrTaken)
		return nil
	}))
	began := time.Now()
	require.NoError(t, client.Close()) // hooks have heard of all
	var names []string
	var last sdktrace.ReadOnlySpan
	for _, span := range ended.Ended() {
		if span.Parent().SpanID() == parent.SpanContext().SpanID() { // no caller waits for the release
			names, last = append(names, span.Name()), span
			require.True(t, span.EndTime().Before(began), "as long as the lock took")
		}
	}
	require.Equal(t, []string{"lock acquire", "lock wait", "lock acquire"}, names)
	require.Equal(t, redlock.ErrTaken.Error(), last.Status().Description)
}
