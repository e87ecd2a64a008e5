// Package holding keeps the locks of one client: what is known of each, and how it is kept alive.
//
//   - A [Hold] is one holder's claim to a lock. After a release or a pass it holds nothing.
//   - A lease has the state of the lock of a Hold: key, token, validity. It is used again for the next lock, so
//     acquiring allocates nothing.
//   - The [Keeper] renews locks, all of a client in one goroutine, and ends their contexts.
//   - [Kept] is the context of a lock kept alive.
//
// Package renewal decides when a lock is renewed, and when its validity ends. It has no clock, no goroutine and no
// lock; this package adds these.
//
// Invariants:
//
//   - Validity ends before a release is sent, and when an extension might shorten it.
//   - No renewal begins for a stopped, released or lost lock.
//   - No context of a kept lock outlives its validity by the client's clock, but for the delay of the goroutine; its
//     Err looks at the clock itself.
//   - No user code runs under a lock of this package, or on the goroutine of renewals.
package holding
