package drivers

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/rueidis/rueidislock"

	"github.com/redlock-go/redlock/bench/harness"
)

// Rueidislock is the lock of rueidis, on the first of the nodes. It is asked
// for one key a lock: a majority of three keys on the same server, which is its
// default, costs more and promises nothing more there. A lock renews itself
// until it is released, for which it keeps a goroutine.
type Rueidislock struct{}

func (Rueidislock) Name() string { return "rueidislock" }

func (Rueidislock) Weaker() string { return "one server" }

func (Rueidislock) Open(_ context.Context, cfg harness.Config) (harness.Session, error) {
	options := rueidisOptions(cfg.Nodes[0])
	options.DisableCache = false // by it the client learns of releases
	locker, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption:   options,
		KeyValidity:    cfg.TTL,
		KeyMajority:    1,
		TryNextAfter:   timeout,
		NoLoopTracking: true,
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cfg.Nodes[0], err)
	}
	lock := locker.TryWithContext
	if cfg.Scenario == harness.Contended {
		lock = locker.WithContext
	}
	return &session{closers{well(locker.Close)}, func() harness.Worker { return &rueidislockWorker{lock: lock} }}, nil
}

type rueidislockWorker struct {
	lock    func(ctx context.Context, name string) (context.Context, context.CancelFunc, error)
	release context.CancelFunc
}

func (w *rueidislockWorker) Acquire(ctx context.Context, key string) (bool, error) {
	_, release, err := w.lock(ctx, key)
	if errors.Is(err, rueidislock.ErrNotLocked) {
		return false, nil
	}
	w.release = release
	return err == nil, err
}

// Release implements [harness.Worker]. It returns when the server has answered.
func (w *rueidislockWorker) Release(context.Context) error {
	w.release()
	return nil
}
