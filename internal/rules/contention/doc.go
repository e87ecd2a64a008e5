// Package contention decides what one process does to get a lock that other processes want
// too. It is pure: no lock, clock, channel or socket.
//
// A [Contender] acts for all callers of the process that wait for one lock. What has happened
// is reported to it, and [Contender.Next] returns what to do: enter or leave the queue of
// processes, have a node track the key, ask the nodes for the lock, or leave it free for a
// while for those that stand in no queue (a gap).
//
// Invariants:
//
//   - All of this is advice: votes decide which client has the lock. What is lost or forged costs time.
//   - No belief outlives a second: Surroundings.Ask bounds the time to the next attempt.
//   - What nodes refuse, or answer without sense, makes a process act a bounded number of
//     times a second.
package contention
