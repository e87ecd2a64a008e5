// Package engine carries operations from their callers to the nodes and the
// verdicts back. Three ideas make it fast:
//
//   - Flat combining: one goroutine at a time, the driver, does the work of all
//     callers. It holds the driver lock (Engine.driver), and with it the sockets,
//     batches, votes and the window. Callers only append to a queue.
//   - Group commit: all that waits becomes one batch, encoded once and written to
//     all nodes. The in-flight window holds the next batch back until a quorum has
//     answered the last one, so that batches grow with load and no timer is needed.
//   - Hinted handoff: a release that a node could not be given is kept as a hint,
//     and sent first thing on the node's next connection.
//
// # The driver
//
// Four kinds of goroutines take the driver lock:
//
//   - a caller that has just submitted and finds the window open: it writes all
//     that waits, its own operation and those of others;
//   - a lone caller: having written, it keeps the lock and reads its own replies, so
//     that no goroutine is switched to for them;
//   - the reader goroutine, parked until replies arrive, and the watchdog, the only
//     timer;
//   - a dialer that brings a connection in, Stats and Close.
//
// A submitter never waits for the lock. It appends to the queue, and if the lock is
// taken it relies on the holder, who looks at the queue once more after giving the
// lock up (see Engine.drive). A turn under the lock is bounded by what was queued
// when it began.
//
// # User code
//
// No user code runs under a lock. The reader calls completions and hooks (see
// callbacks); contexts are read by their callers.
//
// # Lock order
//
// The driver lock, then the queue's or the callbacks' lock.
package engine
