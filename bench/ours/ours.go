// Package ours is this module's own client as a driver of the benchmark.
package ours

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/bench/harness"
	"github.com/redlock-go/redlock/internal/base/knobs"
)

// Driver runs redlock.
type Driver struct {
	// Portable turns the raw socket path off, as on systems that have none.
	Portable bool
	// Scripted leaves the servers' own compare-and-delete alone.
	Scripted bool
	// Async gives locks back without waiting for the answer.
	Async bool
	// NoHandOver has every release go to the nodes.
	NoHandOver bool
	// Fenced gives each lock a fencing token.
	Fenced bool
	// Joint needs a quorum of the first half of the nodes, and one of all but the first, as while
	// nodes change: of six, three and five that share two.
	Joint bool
	// Groups divides the masters into groups of three.
	Groups bool
	// Patient gives a node as long to answer as peers do, 500 ms.
	Patient bool
	// Semaphore has each key be as many permits; 0 means a lock.
	Semaphore int
}

func (d Driver) Name() string {
	name := "redlock"
	for _, way := range []struct {
		is     bool
		suffix string
	}{
		{d.Portable, "-portable"}, {d.Scripted, "-scripted"}, {d.Async, "-async"}, {d.NoHandOver, "-nohandover"}, {d.Fenced, "-fenced"},
		{d.Joint, "-joint"}, {d.Groups, "-groups"}, {d.Patient, "-patient"}, {d.Semaphore > 0, "-permits"},
	} {
		if way.is {
			name += way.suffix
		}
	}
	return name
}

// Shares is for [harness.Sharer].
func (d Driver) Shares() {}

// Permits is for [harness.Divided].
func (d Driver) Permits() int { return max(d.Semaphore, 1) }

func (d Driver) Weaker() string {
	if d.Async {
		return "release not awaited"
	}
	return ""
}

func (d Driver) Open(ctx context.Context, cfg harness.Config) (harness.Session, error) {
	p := &pool{ttl: cfg.TTL, wait: cfg.Scenario == harness.Contended, async: d.Async, share: cfg.Share, permits: d.Semaphore}
	for range max(cfg.Clients, 1) {
		in := redlock.Config{Nodes: cfg.Nodes, Portable: d.Portable, NoHandOver: d.NoHandOver}
		if d.Groups {
			in.Groups, in.Nodes = slices.Collect(slices.Chunk(cfg.Nodes, 3)), nil
		}
		if d.Patient {
			in.NodeTimeout = 500 * time.Millisecond
		}
		if cfg.Patient {
			in.NodeTimeout, in.StallTimeout = 10*time.Second, 10*time.Second
		}
		knobs.Of(&in).Scripted = d.Scripted
		switch {
		case cfg.Persistent:
			in.Nodes = nil
			for _, addr := range cfg.Nodes {
				in.Nodes = append(in.Nodes, "redis://"+addr+"?persistent=yes")
			}
		case cfg.Killed:
			in.MaxTTL = cfg.TTL
		}
		if cfg.Killed {
			in.Logger = slog.New(slog.DiscardHandler)
		}
		if d.Joint {
			in.Nodes, in.NextNodes = cfg.Nodes[:len(cfg.Nodes)/2], cfg.Nodes[1:]
		}
		if d.Fenced {
			in.Fenced, in.MaxTTL = true, cfg.TTL
			knobs.Of(&in).TrustRestarts = true
		}
		client, err := redlock.New(in)
		if err != nil {
			return nil, errors.Join(err, p.Close())
		}
		p.clients = append(p.clients, client)
		if d.Fenced { // waits for MaxTTL the first time that it sees these nodes
			if err := client.InitFencing(ctx); err != nil {
				return nil, errors.Join(err, p.Close())
			}
		}
	}
	return p, nil
}

// pool is a [harness.Pool].
type pool struct {
	clients []*redlock.Client
	next    int
	ttl     time.Duration
	wait    bool // for a lock that is taken
	async   bool // releases are not waited for
	share   bool
	permits int
}

func (p *pool) Close() error {
	var errs []error
	for _, c := range p.clients {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// Extensions is for [harness.Counter].
func (p *pool) Extensions() (n uint64) {
	for _, c := range p.clients {
		n += c.Stats().Extend.Won
	}
	return n
}

func (p *pool) Worker() (harness.Worker, error) {
	client := p.clients[p.next%len(p.clients)]
	p.next++
	w := &worker{acquire: client.TryAcquire, ttl: p.ttl, async: p.async}
	several := client.TryAcquireAny
	switch {
	case p.wait && p.share:
		w.acquire = client.AcquireShared
	case p.share:
		w.acquire = client.TryAcquireShared
	case p.wait:
		w.acquire, several = client.Acquire, client.AcquireAny
	}
	if p.permits > 0 {
		w.acquire = func(ctx context.Context, key string, ttl time.Duration) (redlock.Lock, error) {
			if w.of != key {
				w.of, w.keys = key, redlock.Permits(key, p.permits)
			}
			return several(ctx, ttl, w.keys...)
		}
	}
	return w, nil
}

// worker keeps the lock that it holds.
type worker struct {
	acquire func(ctx context.Context, key string, ttl time.Duration) (redlock.Lock, error)
	ttl     time.Duration
	async   bool
	lock    redlock.Lock
	of      string   // the semaphore of these keys
	keys    []string // of its permits
}

// Permit is for [harness.Numbered].
func (w *worker) Permit() int { return max(slices.Index(w.keys, w.lock.Key()), 0) }

func (w *worker) Acquire(ctx context.Context, key string) (bool, error) {
	lock, err := w.acquire(ctx, key, w.ttl)
	if errors.Is(err, redlock.ErrTaken) {
		return false, nil
	}
	w.lock = lock
	return err == nil, err
}

// Keep is for [harness.Keeper].
func (w *worker) Keep(ctx context.Context) { w.lock.KeepAlive(ctx) }

func (w *worker) Remaining() time.Duration { return w.lock.Remaining() }

func (w *worker) Release(ctx context.Context) error {
	if w.async {
		w.lock.ReleaseAsync()
		return nil
	}
	return w.lock.Release(ctx)
}
