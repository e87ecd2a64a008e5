// Package sharing has the rules of shared locks, and a model to check them. The code of the rules is elsewhere: the
// scripts of package command, run by the nodes, and the rooms of the client, in the same code as for any lock.
//
// An exclusive lock is a string at its key. A shared lock is a sorted set there, with a member for each holder; the
// score is the member's end by the node's clock. The set makes SET NX fail, and the string makes the script fail that
// adds members. Either lock needs a quorum, and two quorums meet at a node.
//
// # Invariants
//
//  1. No reader holds beside a writer, and no two writers do.
//  2. No script changes or removes another's member before its end, nor a string, nor a key without an end.
//  3. A set's key ends with its last member: not before, or a holder would lose it; and not after, or a writer would
//     wait in vain.
//  4. A node has no vote for the longest TTL after a restart. No extend counts after the end of the validity it
//     extends.
//  5. Only acquires and repairs add members. A repair comes after an extend confirmed by a quorum, and is no vote.
//  6. Gates and queues are advice: a lost, late or forged gate costs readers a second, and safety needs none.
//
// # The model
//
// TestProtocol visits, breadth first, all orders of the events of small worlds. TestBroken shows that it finds a
// variant with one rule missing. An actor is one attempt with a token of its own: a caller that tries again is another
// actor, which may begin at any time. Requests are executed late, in any order, or never. A crash is a release never
// executed, a reply needs no state of its own, and a gate is an acquire never executed. Time is a tick at any moment;
// the nodes' clocks do not drift. A TTL is two ticks. Nodes lose all keys, and any acquire drops ended members. Worlds
// that are equal but for the names of nodes and actors are one.
//
// These worlds are searched completely, with REDLOCK_LONG=1. On three nodes: two readers and two writers, 2,120,428
// states; two readers, a writer and two restarts, 3,048,519; a reader and a writer, each with one extend, and two
// restarts, 1,090,040. On five nodes: two readers and a writer, 5,984,472. On two lists of three, a reader of both and
// a writer of the next, with one restart: 1,361,406. No invariant breaks in any of them.
//
// Two variants break no invariant, and are left out for other reasons. In one, an extend adds a lost member and votes.
// It keeps exclusion, but brings back a lock broken by an operator, and a member after its release. In the other, an
// extend counts for an ended member while others keep the set. That would be safe too, since no writer has been at this
// node since. It is refused, so that the result does not depend on when members are dropped.
package sharing
