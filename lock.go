package redlock

import (
	"context"
	"time"

	"github.com/redlock-go/redlock/internal/group"
)

// Lock is a handle on a lock that was acquired. It is a small value: copies are
// handles on the same lock. It is safe for concurrent use. Once the lock is
// released all its handles are dead and say ErrNotHeld; so does the zero Lock.
type Lock struct{ handle group.Handle }

// Key returns the locked key, or "" if the lock was released.
func (l Lock) Key() string { return l.handle.Key() }

// Token returns the value stored at the key, which proves who holds it, or "" if
// the lock was released. It allocates. Keep it secret: it can release the lock.
func (l Lock) Token() string { return l.handle.Token() }

// Remaining returns the validity that is left now, or 0. It neither blocks nor allocates.
func (l Lock) Remaining() time.Duration { return l.handle.Remaining() }

// Extend gives the lock a new ttl, counted from now. It succeeds only if a quorum of
// nodes still held the lock and extended it; it never takes a lost lock again. A lock
// without validity is not extended: ErrExpired. Extend blocks as TryAcquire does.
//
// After ErrNoQuorum or the context's error the lock is held for what Remaining says,
// which never counts on an unconfirmed extension. After ErrNotHeld it is lost.
func (l Lock) Extend(ctx context.Context, ttl time.Duration) error { return l.handle.Extend(ctx, ttl) }

// Release deletes the key on all nodes, also if its validity is over. It blocks
// until a quorum has answered, as TryAcquire does. With a context that has ended the
// release is sent all the same, and Release does not wait.
//
// There are three results: nil, released; ErrNotHeld, a quorum had lost it before;
// and any other error, unknown: the lock ends with its TTL at the latest, and Release
// may be called again. Validity ends when Release is called, unless the result is
// ErrBusy or ErrClosed, where no node was asked.
func (l Lock) Release(ctx context.Context) error { return l.handle.Release(ctx) }
