// Package sharing has the rules of shared locks, and a model that checks them. Their code is the scripts of package
// command, which nodes run, and what rooms of the client do for any lock.
//
// An exclusive lock is a string at its key. A shared lock is a sorted set there: a member for each holder, with its end by
// the node's clock as its score. SET NX is refused by the set, and the script that adds members by the string. Either
// lock needs a quorum; two quorums meet at a node.
//
// # Invariants
//
//  1. No reader holds beside a writer, and no two writers do.
//  2. No script changes or removes another's member before its end, nor a string, nor a key without an end.
//  3. A set's key ends with its last member: not before, or a holder would lose it; and not after, or a writer would
//     wait in vain.
//  4. A node has no vote for the longest TTL after a restart. No extend counts after the end of the validity that it
//     extends.
//  5. Only acquires and repairs add members. A repair comes after an extend that a quorum has confirmed, and is no vote.
//  6. Gates and queues are advice: a lost, late or forged gate costs readers a second, and safety needs none.
//
// # The model
//
// TestProtocol visits, breadth first, all orders of the events of small worlds; TestBroken shows that a variant with one
// rule missing is found. An actor is one attempt with a token of its own: a caller that tries again is another actor,
// which may begin at any time. Requests are executed late, in any order, or never; a crash is a release that is never
// executed, a reply needs no state of its own, and a gate is an acquire that is never executed. Time is a tick at any
// moment; the nodes' clocks do not drift. A TTL is two ticks; nodes lose all keys, and members that have ended are dropped
// with any acquire. Worlds that are equal but for the names of nodes and actors are one.
//
// Complete, with REDLOCK_LONG=1, on three nodes: two readers and two writers, 2,120,428 states; two readers, a writer and
// two restarts, 3,048,519; a reader and a writer that extend once, with two restarts, 1,090,040. On five nodes: two
// readers and a writer, 5,984,472; on two lists of three, a reader of both and a writer of the next, one restart,
// 1,361,406. Each finds nothing.
//
// Two variants are not broken, and are left out for other reasons. An extend that adds a lost member and votes keeps
// exclusion, but brings a lock back that an operator has broken, and a member after its release. To extend a member that
// has ended, while others keep the set, would be safe too: no writer has been at this node since. It is refused, so that
// what counts does not depend on when members are dropped.
package sharing
