// Package contention decides what one process does to get a lock wanted by other processes too. It is pure: no lock,
// clock, channel or socket.
//
// A [Contender] acts for all callers of the process waiting for one lock. It takes reports of events, and
// [Contender.Next] returns the next action: enter or leave the queue of processes, have a node track the key, or ask
// the nodes for the lock. A gap is a time in which the lock is left free for clients outside the queue. In the queue it
// is a place that no process takes.
//
// Invariants:
//
//   - All of this is advice: votes decide which client has the lock. A push is a hint, and so is a place in the queue.
//     A lost or forged one costs time.
//   - No belief outlives a second: Surroundings.Ask bounds the time to the next attempt.
//   - Refusals and senseless answers of nodes make a process act a bounded number of times a second.
package contention
