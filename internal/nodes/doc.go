// Package nodes is the nodes of one quorum as their client sees them: which there are, which of
// them can vote, and why the others cannot.
//
//   - [Members] is which nodes are in which list of a Config, and so which sets of them decide.
//   - [Nodes] has the connections. A [Node] is the state of one, at one moment.
//   - Ready waits until a quorum can vote. A node that cannot is the same reason there, in the error
//     of an operation, and in the log.
//
// Invariants:
//
//   - What changes about a node, and what Ready looks at, is protected by the driver lock. Hooks
//     and the log are called later, by the goroutine of callbacks.
//   - No failure of a node is found, by errors.Is, as the result of an operation.
//   - No address here has credentials.
package nodes
