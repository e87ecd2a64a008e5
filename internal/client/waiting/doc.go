// Package waiting has the callers of one process wait for locks: in line with each other,
// queued with other processes, and woken when a lock is free.
//
//   - [Lines] is the waiting callers, one line for each key, first come, first served. The first of a line alone
//     acts. The literature calls this lock cohorting: threads of one process compete for a local lock, and its owner
//     for the global one, to be passed on inside the process for a bounded time (Dice, Marathe, Shavit: Lock
//     Cohorting, 2012).
//   - A [Waiter] is a caller in a line. Its goroutine does what the contender of its line decides (package
//     contention), and awaits its turn. A caller for several keys has a Waiter in each line, and one [Bell] for all.
//   - [Tries] is one Acquire: its attempts, and the pauses between them.
//   - The queues of processes and the pushes of nodes are in tracking.go. The sentry looks after all lines while
//     there are any; the client's housekeeper calls it.
//
// A released lock goes to the first of its line in one of three ways:
//
//	Pass    the lease goes on with another holder: no round trip
//	Along   the next acquire is sent with the release: one round trip
//	Freed   the first is woken, and asks the nodes when it is its turn
//
// Invariants:
//
//   - No waiter is forgotten: a waiter that leaves, on any path, wakes the new first. After a pass the sentry does so,
//     in time for the first to renew its place and to ask the nodes.
//   - One waiter at a time acts for a line, and reports the result on every path.
//   - A caller that meets no line pays one atomic load.
//   - Lock order: the driver lock, a shard, a lease. Nothing called under a shard's lock takes the driver lock; a place
//     in a queue is left after the shard is unlocked.
package waiting
