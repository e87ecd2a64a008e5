// Package conn is the nodes as the client sees them: sockets that never block
// their caller, batches of commands that are encoded once and written to every
// node, the queue of replies each node owes, and the background work that
// brings a lost node back.
//
// # Who may call what
//
// A [Fleet] has one owner at a time. Every method that touches a socket, a queue
// or a node (Send, SendTo, Sweep, Arm, Check, Fault, Up, Close) is called with
// the lock held that was given to [New]; the fleet takes that lock itself only
// when a dial has ended. [Fleet.Wait] is the exception: it is how a goroutine
// without the lock learns that there is something to read.
// Since file descriptors are used and closed only under that one lock, none can
// be closed, and its number given to somebody else, while it is in use.
//
// # What a batch is promised
//
// Batches reach every node in the order in which they were sent, over one
// connection, or not at all. For each node the owner of a batch hears either
// all of its replies in order, or some of them and then one Fail; never both
// for the same reply, and never anything after that. A batch that cannot be
// written at once keeps its place and never makes another node wait.
// Nothing is ever sent twice, and nothing is kept for a node that is down.
//
// # Goroutines
//
// One per node that is down, dialling, and none for a node that is up on the
// raw path (Linux). The portable path has two per connection: one blocked in
// Read, one in Write. All end with Close.
package conn
