// Package engine carries operations from their callers to the nodes and the
// verdicts back: it queues what is submitted, encodes everything that waits
// into one batch, hands that to all nodes at once, counts their votes and
// completes each operation at the first vote that settles it.
//
// # The driver
//
// All of this is done by whoever holds one role, the driver (Engine.role). It
// is the only writer and the only reader of the sockets, and the only one to
// touch batches, votes and the gate. Three take the role:
//
//   - a caller that has just submitted and finds the gate open: it writes
//     everything that waits, its own operation and others';
//   - a caller that is alone: having written, it keeps the role and reads its
//     own replies, so that no goroutine is switched to for them;
//   - the reader goroutine, parked until replies arrive, and the watchdog.
//
// A submitter never waits for the role. It appends to the queue, and if the
// role is taken it relies on the holder: whoever gives the role up looks at the
// queue once more afterwards (see Engine.drive).
//
// # The gate
//
// A batch holds the gate until a quorum of nodes has answered it or all of its
// operations are settled. What is submitted meanwhile waits and becomes the
// next batch, so that batches grow with load and no timer is needed.
//
// # Lock order
//
// The role, then the queue's lock. Callbacks run with the role held and must
// not block; they may submit.
package engine
