package redlock

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/redlock-go/redlock/internal/group"
)

// Lock is a handle on a lock that was acquired, of one key or, by [Client.AcquireAll],
// of several. It is a small value: copies are handles on the same lock. It is safe for concurrent use. Once the lock is
// released all its handles are dead and say ErrNotHeld; so does the zero Lock.
type Lock struct{ handle group.Handle }

// Key returns the locked key, the first of several, or "" if the lock was released.
func (l Lock) Key() string { return l.handle.Key() }

// Keys returns all locked keys in the order of their bytes, or none if the lock was
// released. It allocates.
func (l Lock) Keys() []string { return l.handle.Keys() }

// Token returns the value stored at the key, which proves who holds it, or "" if
// the lock was released. [Client.Attach] takes it. It allocates. Keep it secret: it can
// release the lock.
func (l Lock) Token() string { return l.handle.Token() }

// Fence returns the fencing token, or 0 where Config.Fenced is not set or the lock was
// attached. It is larger than the token of every lock on the key that was granted before the
// attempt began which has won this one, by any fenced client of the nodes. A resource
// that remembers the largest token it has seen, and refuses smaller ones, is safe from a
// holder that was paused beyond its validity. It is below 2^53, and neither blocks nor
// allocates.
//
// That needs no right clock, no bound on pauses and no order of messages. It does need that
// all fenced clients are configured alike (Config.Fenced); that no node comes back with an
// older state under the same run_id, as a replica that was made a master or a virtual machine
// that was reset to a snapshot does; that a connection ends with its server; that clocks run
// at about the same rate and the machines of the clients that bring a node back count the
// time for which they were suspended (Linux does); and, where more than a minority of nodes
// has lost the tokens, that [Client.InitFencing] is given a right number.
//
// A lock that is handed over inside the process has a token of its own. A holder that was
// handed a lock which the nodes had lost meanwhile has a smaller token than a holder that
// was granted it since, and so is refused by the resource.
func (l Lock) Fence() uint64 { return l.handle.Fence() }

// Remaining returns the validity that is left now, or 0. It neither blocks nor allocates.
// On Linux it counts the time for which the machine was suspended. So does the last look at
// the clock before a lock is returned, with a token or without. Other systems do not tell
// the runtime of Go of a suspension: a lock may be returned there, and be taken for held, for
// as long as the machine was suspended after its validity has ended.
func (l Lock) Remaining() time.Duration { return l.handle.Remaining() }

// Extend gives the lock a new ttl, counted from now. It succeeds only if a quorum of
// nodes still held the lock and extended it; it never takes a lost lock again. A lock
// without validity is not extended: ErrExpired, also where its validity has ended before
// the nodes had answered. Extend blocks as TryAcquire does.
//
// A node that has lost the key, by a restart for example, is given it again once the others
// have extended the lock.
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
// may be called again. If it is, ErrNotHeld means done: the release that was unknown has
// taken effect, or the lock had ended. Validity ends when Release is called, unless the
// result is ErrBusy or ErrClosed, where no node was asked. After ErrBusy the lock is as it
// was: a lock that is kept alive still is.
func (l Lock) Release(ctx context.Context) error { return l.handle.Release(ctx) }

// ReleaseAsync is Release without waiting for the nodes: it queues the release and
// returns. The handle is dead at once. The release keeps its place in the order of what
// is asked for the key; where a node cannot be given it, it is handed off later. Its
// result is in Stats alone. Unlike Release it is never refused for MaxWaiting.
func (l Lock) ReleaseAsync() { l.handle.ReleaseAsync() }

// KeepAlive extends the lock in the background, by the TTL that it was given last, each
// time a third of it has passed, until stop is called, the lock is released, or ctx or
// the lock ends. A renewal that fails is tried again while validity is left.
//
// The context that it returns is derived from ctx and ends then, at the latest when
// validity is over, and not before. [context.Cause] says why:
//
//   - ErrStopped: stop was called, or the lock was released;
//   - ErrNotHeld: too few nodes still held it: it was deleted, or taken over;
//   - ErrNoQuorum, with a *QuorumError of the last renewal: too few nodes answered for
//     the rest of its validity;
//   - ErrExpired: its validity ended before it could be renewed, since the process or the
//     machine stood still;
//   - ErrMaxHold: Config.MaxHold has passed. The lock is still held for what Remaining
//     says;
//   - ErrClosed: the client was closed;
//   - the cause of ctx.
//
// If the key of a lock is deleted by hand, by an operator's DEL for example, it is free at
// once, and its holder learns of that from the next renewal: for a third of the TTL at most both it and
// the next holder go on. So end the holder first, or take a fencing token.
//
// Its Err looks at the clock, so that a function which asks it after a pause of any
// length is told the truth; its Done channel is closed within about a millisecond. No
// client can stop a statement that is already under way when its process is paused, or
// see a pause in which a hypervisor stops all clocks of the machine: a resource that must
// be safe against these needs a fencing token. [FenceFrom] finds that of the lock in the
// context.
//
// stop may be called twice, and by any goroutine; it does not release the lock. A lock
// whose TTL is below 30 ms, or that is kept alive already, cannot be kept alive: the
// context has ended then, and its cause says so. KeepAlive does not block. It costs no
// timer, allocates the context alone, and costs no goroutine unless ctx is of a kind that
// package context does not know.
func (l Lock) KeepAlive(ctx context.Context) (_ context.Context, stop func()) {
	kept := l.handle.KeepAlive(ctx)
	return kept, kept.Stop
}

// KeepAliveFunc is KeepAlive without a context, for callers with many locks. lost, which
// may be nil, is called as Op.Done is, with what context.Cause would say, unless the lock
// is stopped or released. KeepAliveFunc neither blocks nor allocates.
func (l Lock) KeepAliveFunc(lost func(cause error)) error { return l.handle.KeepAliveFunc(lost) }

// StopKeepAlive ends what KeepAlive or KeepAliveFunc has begun. When it returns, no
// renewal begins any more; one that is under way may still take effect.
func (l Lock) StopKeepAlive() { l.handle.StopKeepAlive() }

// FenceFrom returns the fencing token of the lock that ctx belongs to: the context of
// [Lock.KeepAlive], that which [Client.Do] calls its function with, or one that is derived
// from them. It is false for any other context, and for a lock without a token. Of several
// locks it is that of the last one which was kept alive.
func FenceFrom(ctx context.Context) (token uint64, ok bool) { return group.FenceFrom(ctx) }

// String shows the key, the validity that is left, and a short digest of the token,
// never the token itself: Lock may be printed and logged. So do Format, LogValue and
// MarshalJSON.
func (l Lock) String() string {
	return fmt.Sprintf("lock %s, %v left, token digest %s", group.Quote(l.Key()), l.Remaining(), l.handle.Digest())
}

// Format implements fmt.Formatter, for all verbs alike.
func (l Lock) Format(f fmt.State, _ rune) { fmt.Fprint(f, l.String()) }

// LogValue implements slog.LogValuer.
func (l Lock) LogValue() slog.Value {
	return slog.GroupValue(slog.String("key", l.Key()), slog.Duration("remaining", l.Remaining()), slog.String("digest", l.handle.Digest()))
}

// MarshalJSON implements json.Marshaler.
func (l Lock) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Key       string `json:"key"`
		Remaining string `json:"remaining"`
		Digest    string `json:"digest"`
	}{l.Key(), l.Remaining().String(), l.handle.Digest()})
}
