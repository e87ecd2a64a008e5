// Package fencing is the protocol of fencing tokens: each lock gets a token larger than all before
// it, over N independent masters, in one round trip. It is pure: no socket, no clock, no goroutine. A client's half is
// plain values, a node's half Lua scripts. A model checker in the tests runs both.
//
// # The property
//
// If attempt a succeeded before attempt b of the same key started, every token of a is less than every token of b. Two
// successes never share a token. This assumes no clock, no pause, no expiry and no order of messages; the preconditions
// are about forgetful nodes (below).
//
// # A node's half
//
// A server keeps for a fleet, in one sorted set: a marker, a floor, and the largest token F of each lock key. The
// client proposes a token t, and the node accepts it only if t > E = max(F, floor). Two quorums meet at a node, and the
// tokens accepted by a node only grow: this is the proof, while nodes forget nothing. Package fencenode of the tests
// says in Go what the Lua scripts do.
//
// A client's half is a [Proposal]. It chooses the token of the next attempt: max(time in µs, E + 1). No node compares
// the token with a clock, so any token above E is accepted: a voting quorum can lock a free key with the second
// attempt. [Answers] decides what follows a lost round.
//
// # A node that forgets
//
// A node without the marker of its present life has no vote, until a [Recovery] brings it back. It may have voted for
// an attempt still counting its votes, and for successes known to other nodes. So it gets a vote again only when
//
//  1. it has a provisional marker with a nonce (NOTICE), unique to this life of the node,
//  2. all attempts running at the receipt of the nonce have ended (quarantine: the longest TTL, and drift),
//  3. its floor is at least what N − quorum + 1 other active nodes knew after that.
//
// Each of the three is needed: the model checker finds the protocol broken without any one of them (TestBroken names
// all the variants). If too many nodes have forgotten for the third, an operator gives the largest token seen by the
// resources ([InitFloor]).
//
// # A change of configuration
//
// Node lists, quorum and longest TTL are a [Configuration]. It changes in two steps while clients run. The clients of
// step 0 have the present configuration, those of step 1 both, with a quorum of each, and those of step 2 the next one.
// Clients of neighbouring steps meet at nodes of their common configuration. The clients of steps 0 and 2 do not meet,
// so the nodes keep them apart:
//
//   - A [Marker] names one configuration or two, and a node serves the clients of all it names. At first each names the
//     present one: clients of steps 0 and 1 are served.
//   - An operator's call ([Looks]) seals nodes: their markers name both, and clients of step 0 are refused. Once a
//     quorum of the present configuration is sealed at one moment, no client of step 0 is granted a lock, and all their
//     grants are known there.
//   - After the longest TTL the last of those locks has ended. Then the call gives nodes of the next configuration the
//     largest token as their floor, and markers naming only that configuration: clients of step 2 are served.
//   - A node that forgets in between learns from the nodes of each configuration named by a marker. It is sealed if
//     they are ([Recovery.Names]).
//
// The groups of a client change by this protocol too, each for itself: a group's number, and the number of groups, are
// part of the configuration, and a staying node is in both. A key may go from one group to another: to its clients the
// first is the present configuration, and the other the next one. So no group is opened before all are sealed and the
// longest TTL has passed, and the floor is the largest token of all groups.
//
// An unfinished change does no harm. Before the call it is taken back by leaving step 1. After the call, a change in
// the other direction takes it back. This begins in step 1 too: a quorum of both is the same in both directions. If the
// longest TTL changes, clients with both configurations take the longer one for quarantines, and the shorter one as the
// bound of TTLs.
//
// # Preconditions
//
// All clients have one member list, quorum and longest TTL, except in a change: they are part of the marker. No TTL and
// no extension is above the longest TTL. Members are distinct servers, without failover. A server's state may be lost
// or rolled back, but in the latter case its run_id is new. A connection dies with its server. Tokens are below 2^53. A
// resumed node has forgotten none of its answers. An operator's number covers the tokens of all locks granted before
// its use.
package fencing
