// Package waiting has the callers of one process wait for locks: in line with each other,
// queued with other processes, and woken when a lock is free.
//
//   - [Lines] is the waiting callers: a desk for each key, with the line of its callers, first come, first served. One of
//     them at a time asks the nodes. The literature calls this lock cohorting: threads of one process compete for a
//     local lock, and its owner for the global one, to be passed on inside the process for a bounded time (Dice,
//     Marathe, Shavit: Lock Cohorting, 2012).
//   - A desk does what its contender decides (package contention), after each event, in one function. No goroutine
//     belongs to it: the answers of nodes are events too (inquiry.go).
//   - A [Demand] is what one caller waits for: any of some keys, or all of them. It has a place in each line, and one
//     wait for all of them.
//   - [Tries] is one Acquire: its attempts, and the pauses between them.
//   - The client's housekeeper has the desks go on that are due, and the sentry look after the nodes ([Lines.Turn]).
//
// A released lock goes to the first of its line: it passes on without a round trip (Pass), the next acquire is sent along
// with the release (Along), or the first has the turn, and asks the nodes when the process may (Freed).
//
// A caller without a desk pays one atomic load. Locks are taken in this order: the driver lock, a shard, a demand, a
// lease. Nothing called under a shard's lock takes the driver lock: questions are queued there, and sent once the shard
// is unlocked.
package waiting
