package ours

import (
	"context"
	"sync"
	"time"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/bench/harness"
)

// Doer runs redlock by [redlock.Client.TryDo], which keeps its lock alive and does not wait for the release.
type Doer struct{}

func (Doer) Name() string { return "redlock-do" }

func (Doer) Weaker() string { return "release not awaited" }

func (Doer) Open(_ context.Context, cfg harness.Config) (harness.Session, error) {
	if cfg.Scenario == harness.Contended {
		return nil, harness.Unsupported("does not wait for a lock")
	}
	client, err := redlock.New(redlock.Config{Nodes: cfg.Nodes})
	if err != nil {
		return nil, err
	}
	return &doing{client: client, cfg: cfg}, nil
}

// doing is a [harness.Runner].
type doing struct {
	client *redlock.Client
	cfg    harness.Config
}

func (d *doing) Close() error { return d.client.Close() }

func (d *doing) Run(ctx context.Context, probe *harness.Probe) error {
	var all sync.WaitGroup
	var mu sync.Mutex // the probe's
	for _, keys := range d.cfg.Keys {
		all.Go(func() {
			for turn := 0; probe.Running(); turn++ {
				start := time.Now()
				err := d.client.TryDo(ctx, keys[turn%len(keys)], d.cfg.TTL, func(context.Context) error { return nil })
				now := time.Now()
				mu.Lock()
				if err != nil {
					probe.Failed(err, now.Sub(start))
				} else {
					probe.Pairs(1, now.Sub(start))
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return nil
}
