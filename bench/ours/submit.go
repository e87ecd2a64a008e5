package ours

import (
	"context"
	"errors"
	"time"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/bench/harness"
)

// Submitter runs redlock by [redlock.Client.Submit], as a program with an event
// loop does: no goroutine waits for a lock, each of which begins its next operation from
// the callback of the last.
type Submitter struct{}

func (Submitter) Name() string { return "redlock-submit" }

func (d Submitter) Open(ctx context.Context, cfg harness.Config) (harness.Session, error) {
	if cfg.Scenario == harness.Contended {
		return nil, harness.Unsupported("does not wait for a lock")
	}
	client, err := redlock.New(redlock.Config{Nodes: cfg.Nodes})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	_ = client.Ready(ctx) // else all operations begin at once, before a node can answer
	return &loop{client: client, cfg: cfg}, nil
}

// loop is a [harness.Runner].
type loop struct {
	client *redlock.Client
	cfg    harness.Config
}

func (l *loop) Close() error { return l.client.Close() }

func (l *loop) Run(ctx context.Context, probe *harness.Probe) error {
	ended := make(chan struct{}, l.cfg.Concurrency)
	for i := range l.cfg.Concurrency {
		c := &chain{client: l.client, probe: probe, ended: ended}
		for _, key := range l.cfg.Keys[i] {
			c.keys = append(c.keys, []byte(key))
		}
		c.op.TTL = l.cfg.TTL
		c.op.Done = func(*redlock.Op) { c.done() }
		c.acquire(time.Now())
	}
	for range l.cfg.Concurrency {
		select {
		case <-ended:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// chain takes one lock after the other. All that it does after its first step
// happens in callbacks, of which a client runs one at a time, those of other
// chains included; so they can share a probe.
type chain struct {
	client *redlock.Client
	probe  *harness.Probe
	ended  chan<- struct{}
	keys   [][]byte
	turn   int
	op     redlock.Op
	start  time.Time // of the pair
	middle time.Time // the lock is held
}

func (c *chain) acquire(now time.Time) {
	if !c.probe.Running() {
		c.ended <- struct{}{}
		return
	}
	c.op.Kind, c.op.Key = redlock.OpAcquire, c.keys[c.turn%len(c.keys)]
	c.start = now
	c.turn++
	c.submit()
}

func (c *chain) submit() {
	if err := c.client.Submit(&c.op); err != nil {
		c.probe.Failed(err, time.Since(c.start))
		c.ended <- struct{}{}
	}
}

func (c *chain) done() {
	now, err := time.Now(), c.op.Err()
	switch {
	case errors.Is(err, redlock.ErrTaken):
		c.probe.Refused()
		c.acquire(c.start)
	case err != nil:
		c.probe.Failed(err, now.Sub(c.start))
		c.acquire(now)
	case c.op.Kind == redlock.OpAcquire:
		c.middle = now
		c.op.Kind = redlock.OpRelease
		c.submit()
	default:
		c.probe.Pairs(1, now.Sub(c.start))
		c.probe.Apart(1, c.middle.Sub(c.start), now.Sub(c.middle))
		c.acquire(now)
	}
}
