// Package fence is one client's part in fencing: it proposes tokens, learns from refusals, and brings back nodes
// after they have forgotten. The protocol, and why it holds, is package fencing.
//
//   - [Client] proposes the tokens of an attempt, and decides whether an attempt is made again. A nil Client is of a
//     client without fencing.
//   - A recovery brings one node back. The client's housekeeper carries all of them on, by Turn, and from time to time
//     has nodes drop old tokens.
//   - [Acts] is an operator's acts, on all groups of a client at once. They bring nodes back where the other nodes
//     cannot, and have the next configuration of a change suffice alone.
//
// Invariants: Turn does not wait for nodes, their answers ring; mu is taken last.
package fence
