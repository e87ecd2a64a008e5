// Package holding keeps the locks of one client: what is known of each, and how it is
// kept alive.
//
//   - A [Hold] is one holder's claim to a lock. A holder that has released its lock, or has
//     passed it on, has a Hold that holds nothing.
//   - A lease has the state of the lock of a Hold: key, token, validity. It is used again
//     for the next lock, so that to acquire allocates nothing.
//   - The [Keeper] renews locks, all of a client in one goroutine, and ends their contexts.
//   - [Kept] is the context of a lock that is kept alive.
//
// When a lock is renewed, and when its validity ends, is decided by package renewal, which
// has no clock, no goroutine and no lock; this package adds these.
//
// Invariants:
//
//   - Validity ends before a release is sent, and when an extension might shorten it.
//   - No renewal begins for a lock that was stopped, released or lost.
//   - No context of a kept lock is alive when its validity is over by the client's clock, but
//     for the delay of the goroutine; its Err looks at the clock itself.
//   - No user code runs under a lock of this package, or on the goroutine that renews.
package holding
