// Package ours is this module's own client as a driver of the benchmark.
package ours

import (
	"context"
	"errors"
	"time"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/bench/harness"
)

// Driver runs redlock: one client, shared by all workers.
type Driver struct {
	// Portable turns the raw socket path off, as on systems that have none.
	Portable bool
}

// Name implements [harness.Driver].
func (d Driver) Name() string {
	if d.Portable {
		return "redlock-portable"
	}
	return "redlock"
}

// Open implements [harness.Driver].
func (d Driver) Open(_ context.Context, cfg harness.Config) (harness.Session, error) {
	client, err := redlock.New(redlock.Config{Nodes: cfg.Nodes, Portable: d.Portable})
	if err != nil {
		return nil, err
	}
	return &pool{Client: client, ttl: cfg.TTL}, nil
}

// pool is a [harness.Pool].
type pool struct {
	*redlock.Client
	ttl time.Duration
}

// Worker implements [harness.Pool].
func (p *pool) Worker() (harness.Worker, error) {
	return &worker{client: p.Client, ttl: p.ttl}, nil
}

// worker keeps the lock that it holds.
type worker struct {
	client *redlock.Client
	ttl    time.Duration
	lock   redlock.Lock
}

// Acquire implements [harness.Worker].
func (w *worker) Acquire(ctx context.Context, key string) (bool, error) {
	lock, err := w.client.TryAcquire(ctx, key, w.ttl)
	if errors.Is(err, redlock.ErrTaken) {
		return false, nil
	}
	w.lock = lock
	return err == nil, err
}

// Release implements [harness.Worker].
func (w *worker) Release(ctx context.Context) error { return w.lock.Release(ctx) }
