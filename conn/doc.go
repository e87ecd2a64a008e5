// Package conn has one connection to each of N independent Redis or Valkey servers, and sends what many goroutines ask
// at the same moment to all of them in one write. It is for what a majority of servers decides: a lock, a leader, a
// register. Package quorum counts the votes, package resp writes and reads the protocol. Package redlock stands on this
// package.
//
//	nodes, err := conn.Open(conn.Config{Addresses: addresses})
//	...
//	err = nodes.Await(ctx)
//	...
//	var votes quorum.Tally
//	votes.Reset(quorum.Majority(quorum.First(len(addresses))))
//	for node, reply := range nodes.Do(ctx, resp.AppendCommand(nil, "SET", "leader", name, "NX", "PX", "30000")) {
//		if votes.Record(node, vote(reply)) != quorum.Pending { // vote: Granted, Denied or Failed
//			break
//		}
//	}
//
// [Nodes.Do] asks all nodes, and wakes its caller when a majority has answered or failed. A slow or silent node holds no
// caller up, and takes no goroutine for a request. [Nodes.Use] sends batches of one's own, without a goroutine and an
// allocation for each request. A node is connected, greeted, authenticated and, when it has failed, dialed again in the
// background.
//
// # Errors
//
// The error of a node is an [*Error]. errors.Is finds one of the Err variables in it where one applies: why the node is
// down. Its text holds no credential and no line break. If it wraps [ErrNotSent] the node was sent nothing; otherwise it
// may have executed the command. Nothing is sent twice.
//
// # Servers
//
// The servers must be independent: a replica, a node of a cluster, a sentinel and the second address of a server are
// refused. OPERATORS.md, in the directory of this package, is for operators of locks: permissions, TLS, restarts, changes
// of nodes, timeouts, and the effects of server errors. Package conntest has masters for tests of programs that use
// locks; they run no scripts of others, so test your own commands on real servers.
//
// # Below Nodes
//
// [Fleet] is the level below, for a program with its own loop, as package redlock has. It may still change where Nodes
// does not. The rest of this text is about it.
//
// A [Form] is a number for the encoding of a node's commands; the owner's probes find it in the handshake.
//
// # Ownership
//
// A [Fleet] has one owner at a time. Every method touching a socket, a queue or a node (Send, SendTo, Sweep, Arm,
// Check, Close) is called with the lock given to [New] held. The fleet takes this lock itself only when a dial has
// ended. [Fleet.Wait] is the exception: a goroutine without the lock waits there for something to read.
//
// Descriptors are used and closed under this one lock. So no descriptor can be closed, and its number used again by
// the process, while it is in use.
//
// # What a batch is promised
//
// Batches reach a node in the order of their sending, over one connection, or not at all. For each node the owner of a
// batch receives all of its replies in order, or some of them and then one Fail; never both for one reply, and nothing
// after a Fail. A batch too large to be written at once keeps its place, and never makes another node wait. Nothing is
// sent twice, and nothing is kept for a node that is down.
//
// # Pushes
//
// On a connection in RESP3 a server may send pushes, frames that answer no command, between any two replies. The owner
// receives each in its place among the replies (Config.OnPush). None counts as progress: a server with nothing but pushes
// is silent to a caller awaiting replies. A flood of them ends the connection, and so do a push that is malformed or too
// large to be decoded, and any in RESP2.
//
// A subscription ends with its connection. [Node] has the number of the connection, to distinguish one from the next,
// and reports whether pushes can come.
//
// # Goroutines
//
// A node has one goroutine while it is down: it dials. While it is up it has none on the raw path (Linux), and two on
// the portable path, one in Read and one in Write. All of them end with Close.
package conn
