// Package fencing is the protocol that gives each lock a token which grows with every
// grant, over N independent masters, in one round trip. It is pure: no socket, no clock,
// no goroutine. Its two halves are plain values that the client, the fake server and the
// simulator share, and that the model checker in the tests of this package runs.
//
// # The property
//
// If attempt a succeeded before attempt b of the same key started, every token of a is
// less than every token of b. Two successes never share a token. No clock, no pause, no
// expiry and no order of messages is assumed for it; the preconditions are about nodes
// that forget (below).
//
// # A node's half
//
// [Node] is what one server keeps for a fleet, in one sorted set: a marker, a floor, and
// the largest token F of each lock key. The client proposes a token t, and the node
// accepts it only if t > E = max(F, floor). Two quorums meet at a node, and what a node
// accepts only grows: that is the proof, while nodes forget nothing. The Lua scripts
// do what the methods of Node do, and nothing else.
//
// # A client's half
//
//   - [Proposal] chooses the token of the next attempt: max(time in µs, E + 1). No node
//     compares it with a clock, so any token is accepted that exceeds E: a quorum that votes
//     can lock a free key with the second attempt.
//   - [Refusals] decides what follows a lost round.
//   - [Block] is the tokens of one lease that passes from holder to holder.
//   - [Rejoin] brings a node back that has forgotten.
//
// # A node that forgets
//
// A node without the marker of its present life has no vote. It may have voted for an
// attempt that is still counting, and for successes that other nodes know of. So it gets a
// vote again only when
//
//  1. it has a provisional marker with a nonce (NOTICE), which no other life of the
//     node ever has,
//  2. all attempts that were running when that nonce was received have ended
//     (quarantine: the longest TTL, and drift),
//  3. its floor is at least what N − quorum + 1 other active nodes knew after that.
//
// Each of the three is needed: the model checker finds the protocol broken without any
// one of them (TestBroken names all the variants). Where too many have forgotten for the
// third, an operator gives the largest token that the resources have seen ([InitFloor]).
//
// # A change of configuration
//
// Node lists, quorum and longest TTL are a [Configuration]. It changes in two steps while
// clients run: those of step 0 have the present one, those of step 1 both, with a quorum of each,
// and those of step 2 the next one. The clients of neighbouring steps meet at nodes of the one that they have
// in common. Those of steps 0 and 2 do not meet, so the nodes keep them apart:
//
//   - A [Marker] names one configuration or two, and a node serves the clients that have all that it
//     names. At first each names the present one: clients of steps 0 and 1 are served.
//   - An operator's call ([Change]) seals nodes: their markers name both, and clients of step 0 are
//     refused. Once a quorum of the present configuration is sealed at one moment, no client of step 0 is granted
//     a lock, and what they were granted is known there.
//   - After the longest TTL, when the last of those locks has ended, the call gives nodes of the next
//     configuration that floor, and markers that name it alone: clients of step 2 are served.
//   - A node that forgets in between learns from the nodes of each configuration that a marker names,
//     and is sealed if they are ([Rejoin.Fleet]).
//
// The groups of a client change by this protocol too, each for itself: the number of a group, and of how
// many, is part of the configuration, and a node that stays is in both. A key may go from one group to another:
// to its clients the first is the present configuration, and the other the next one. So no group is opened
// before all are sealed and the longest TTL has passed, and the floor is the largest token of all groups.
//
// A change that is not finished does no harm. Before the call it is taken back by leaving step 1; after
// it by a change the other way, which begins in step 1 too, since a quorum of both is the same either way.
// Where the longest TTL changes, quarantines take the longer one, and TTLs are bounded by the shorter one, in clients
// that have both.
//
// # Preconditions
//
// One member list, quorum and longest TTL for all clients but in a change: they are part of the marker.
// No TTL and no extension above the longest TTL. Members are distinct servers, without
// failover. A server's state may be lost or rolled back, but with a new run_id if it is
// rolled back. A connection dies with its server. Tokens are below 2^53. A node that is
// resumed has forgotten nothing of what it has answered. An operator's number covers the
// tokens of all locks that were granted before it is used.
package fencing
