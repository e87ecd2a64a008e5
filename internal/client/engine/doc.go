// Package engine carries operations from their callers to the nodes and the
// verdicts back. Three ideas make it fast:
//
//   - Flat combining: one goroutine at a time, the driver, does the work of all
//     callers. It holds the driver lock (driver.lock), and with it the sockets,
//     batches, votes and the window. Callers only append to a queue.
//   - Group commit: all waiting operations become one batch, encoded once and written to all nodes. The in-flight
//     window holds the next batch back until a quorum has answered the last one, so batches grow with load and no timer
//     is needed.
//   - Hinted handoff: a release is owed to a node until the node has answered it. A missed release is kept as a hint,
//     and sent first thing on the node's next connection. A refused one is sent again after a growing pause.
//
// # The driver
//
// Who takes the driver lock: a caller that has just submitted and finds the window open; a lone caller, which keeps it
// and reads its own replies (lone); the reader goroutine, parked until replies arrive; the watchdog, the only timer; the
// goroutine of callbacks, for what these have submitted; a dialer when it starts and after each dial, Stats and Close.
//
// A submitter never waits for the lock. It appends to the queue. If the lock is taken, its holder sends the
// operation: after unlocking it looks at the queue once more (see driver.drive). A turn under the lock is bounded by
// the queue at its begin.
//
// # Votes of a whole batch
//
// Nodes nearly always do all they are asked. So a batch has the replies of this case written beside its commands
// (Batch.Usual). What arrives is compared with them in one piece, and granted in one loop (votes.granted).
//
// # User code
//
// No user code runs under a lock. A separate goroutine, the goroutine of callbacks,
// calls completions and hooks (see callbacks.go). Callers read their own contexts.
//
// # Lock order
//
// The driver lock, then the queue's or the callbacks' lock.
package engine
