package group

import (
	"context"
	"errors"
	"time"

	"github.com/redlock-go/redlock/internal/engine"
	"github.com/redlock-go/redlock/internal/renewal"
)

// Do calls f with a context that ends with the lock that acquire brings. It releases the lock in
// every case. name is that of the call, for errors.
func Do(ctx context.Context, name string, ttl time.Duration, acquire func(context.Context) (Handle, error), f func(context.Context) error) (err error) {
	if ttl < renewal.MinTTL {
		return engine.WrongArgument("ttl is %v; %s needs %v at least, to keep the lock alive", ttl, name, renewal.MinTTL)
	}
	if f == nil {
		return engine.WrongArgument("%s was given no function", name)
	}
	ctx = orBackground(ctx)
	h, err := acquire(ctx)
	if err != nil {
		return err
	}
	asked := false
	defer func() {
		if !asked { // the client is busy, or ctx, which is user code, has panicked
			h.ReleaseAsync()
		}
	}()
	kept := h.KeepAlive(ctx)
	returned := false
	defer func() {
		lost := kept.Lost()
		kept.Stop()
		released := h.Release(ctx)
		asked = released != engine.ErrBusy
		if released == engine.ErrNotHeld && lost == nil && returned {
			lost = released
		}
		if lost != nil {
			err = errors.Join(err, lost)
		}
	}()
	err = f(kept)
	returned = true
	return err
}
