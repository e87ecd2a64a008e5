package ours

import (
	"context"
	"errors"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/bench/harness"
)

// Doer runs redlock by [redlock.Client.TryDo], which keeps its lock alive and does not wait for the release.
type Doer struct{}

func (Doer) Name() string { return "redlock-do" }

func (Doer) Weaker() string { return "release not awaited" }

func (Doer) Open(_ context.Context, cfg harness.Config) (harness.Session, error) {
	if cfg.Scenario != harness.Uncontended {
		return nil, harness.Unsupported("does not wait for a lock, or keep one")
	}
	client, err := redlock.New(redlock.Config{Nodes: cfg.Nodes})
	return doing{client, cfg}, err
}

// doing is a [harness.Pool], and each of its workers.
type doing struct {
	*redlock.Client
	cfg harness.Config
}

func (d doing) Worker() (harness.Worker, error) { return d, nil }

// Acquire is the whole pair.
func (d doing) Acquire(ctx context.Context, key string) (bool, error) {
	err := d.TryDo(ctx, key, d.cfg.TTL, func(context.Context) error { return nil })
	if errors.Is(err, redlock.ErrTaken) {
		return false, nil
	}
	return err == nil, err
}

func (doing) Release(context.Context) error { return nil }
