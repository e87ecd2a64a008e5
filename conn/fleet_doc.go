// Package fleet connects a client to its nodes: connections, the handshake, the queue of replies owed by each node,
// and reconnects. It knows no locks: it sends bytes encoded by its owner. A [Form] is a number for the encoding of a
// node's commands; the owner's probes find it in the handshake. The errors of nodes are those of package conn.
//
// # Ownership
//
// A [Fleet] has one owner at a time. Every method that touches a socket, a queue or a node (Send, SendTo, Sweep, Arm,
// Check, Close) is called with the lock given to [New] held. The fleet takes this lock itself only when a dial has
// ended. [Fleet.Wait] is the exception: a goroutine without the lock waits there for something to read.
//
// Descriptors are used and closed under this one lock. So no descriptor can be closed, and its number used again by
// the process, while it is in use.
//
// # What a batch is promised
//
// Batches reach a node in the order of their sending, over one connection, or not at all. For each node the owner of
// a batch receives all of its replies in order, or some of them and then one Fail; never both for one reply, and
// nothing after a Fail. A batch that cannot be written at once keeps its place, and never makes another node wait.
// Nothing is sent twice, and nothing is kept for a node that is down.
//
// # Pushes
//
// On a connection in RESP3 a server may send pushes, frames that answer no command, between any two replies. The
// owner receives each in its place among the replies (Config.OnPush), except one too large to be decoded: it is
// skipped while it arrives. None counts as progress: a server with nothing but pushes is silent to a caller that
// awaits replies. A flood of them ends the connection, and so do a malformed push, and any in RESP2.
//
// A subscription ends with its connection. [Node] has the number of the connection, to distinguish one from the next,
// and reports whether pushes can come.
//
// # Goroutines
//
// A node has one goroutine while it is down: it dials. While it is up it has none on the raw path (Linux), and two on
// the portable path, one in Read and one in Write. All of them end with Close.
package conn
