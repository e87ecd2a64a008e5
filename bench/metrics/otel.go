package metrics

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/redlock-go/redlock"
)

// Instrument reports a client to OpenTelemetry. Times are recorded as they end, by the hooks that it
// adds to cfg: call it before New, with a meter of the program, and Observe with the client that New
// returned. Buckets are those of the library, unless a view of the program replaces them.
func Instrument(cfg *redlock.Config, meter metric.Meter) error {
	bounds := make([]float64, len(redlock.TimeBounds))
	for i, bound := range redlock.TimeBounds {
		bounds[i] = bound.Seconds()
	}
	attempts, err := meter.Float64Histogram("redlock.attempt.duration", metric.WithUnit("s"),
		metric.WithDescription("Time from the call to the verdict."), metric.WithExplicitBucketBoundaries(bounds...))
	if err != nil {
		return err
	}
	waits, err := meter.Float64Histogram("redlock.wait.duration", metric.WithUnit("s"),
		metric.WithDescription("Time that calls of Acquire took in all."), metric.WithExplicitBucketBoundaries(bounds...))
	if err != nil {
		return err
	}
	attempt, acquire := cfg.Hooks.Attempt, cfg.Hooks.Acquire
	cfg.Hooks.Attempt = func(a redlock.Attempt) {
		ctx := a.Ctx // an exemplar of the caller's trace
		if ctx == nil {
			ctx = context.Background()
		}
		attempts.Record(ctx, a.Duration.Seconds(), metric.WithAttributes(attribute.Stringer("kind", a.Kind), attribute.String("result", resultOf(a.Err))))
		if attempt != nil {
			attempt(a)
		}
	}
	cfg.Hooks.Acquire = func(a redlock.Acquisition) {
		waits.Record(a.Ctx, a.Waited.Seconds(), metric.WithAttributes(attribute.Bool("handed_over", a.HandedOver), attribute.String("result", resultOf(a.Err))))
		if acquire != nil {
			acquire(a)
		}
	}
	return nil
}

// one is 1 for true.
func one(is bool) int64 {
	if is {
		return 1
	}
	return 0
}

// resultOf is the label of an error.
func resultOf(err error) string {
	for _, known := range []struct {
		err  error
		name string
	}{
		{redlock.ErrTaken, "denied"}, {redlock.ErrNotHeld, "denied"}, {redlock.ErrNoQuorum, "no_quorum"},
		{redlock.ErrExpired, "expired"}, {redlock.ErrBusy, "refused"}, {redlock.ErrClosed, "refused"},
	} {
		if errors.Is(err, known.err) {
			return known.name
		}
	}
	if err != nil {
		return "cancelled"
	}
	return "won"
}

// Observe reports the state of the client and of its nodes at each collection, until the
// registration is undone.
func Observe(client *redlock.Client, meter metric.Meter) (metric.Registration, error) {
	var failed error
	gauge := func(name, what string) metric.Int64ObservableGauge {
		g, err := meter.Int64ObservableGauge(name, metric.WithDescription(what))
		failed = errors.Join(failed, err)
		return g
	}
	counter := func(name, what string) metric.Int64ObservableCounter {
		c, err := meter.Int64ObservableCounter(name, metric.WithDescription(what))
		failed = errors.Join(failed, err)
		return c
	}
	held := gauge("redlock.locks.held", "Locks acquired and not released.")
	inLine := gauge("redlock.callers.in_line", "Callers that wait for a lock.")
	lost := counter("redlock.locks.lost", "Locks that were lost while they were kept alive.")
	up := gauge("redlock.node.up", "1 if the node has a connection.")
	mayVote := gauge("redlock.node.may_vote", "1 if the node has a vote in locks, by restarts and fencing.")
	votes := counter("redlock.node.votes", "Votes of the node.")
	if failed != nil {
		return nil, failed
	}
	return meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		s := client.Stats()
		o.ObserveInt64(held, int64(s.Held))
		o.ObserveInt64(inLine, int64(s.InLine))
		o.ObserveInt64(lost, int64(s.Lost))
		for _, n := range s.Nodes {
			node := []attribute.KeyValue{attribute.String("node", n.Addr), attribute.Int("redlock_group", n.Group)}
			o.ObserveInt64(up, one(n.Up), metric.WithAttributes(node...))
			o.ObserveInt64(mayVote, one(n.NoVote == nil), metric.WithAttributes(node...))
			for vote, count := range map[string]uint64{"granted": n.Granted, "denied": n.Denied, "failed": n.Failed} {
				o.ObserveInt64(votes, int64(count), metric.WithAttributes(append(node[:2:2], attribute.String("vote", vote))...))
			}
		}
		return nil
	}, held, inLine, lost, up, mayVote, votes)
}
