// Package histories has whole clients live through histories in virtual time: clients that
// come and go, and use locks in every way there is, beside foreign ones, on nodes and over
// links that fail. What happens is recorded, and checked against what the client promises:
//
//   - no two handles on a key have validity at once (ledger);
//   - no validity lasts longer than a quorum of the nodes has the lock (ledger), nor the
//     context of a lock that is kept alive longer than its validity (watch);
//   - a lock that is free and wanted is granted soon, and callers that stand in no queue have
//     their turn (watch);
//   - fencing tokens grow with the grants on a key (ledger);
//   - after the end no caller waits, no goroutine is left, and no key (end).
//
// In some histories the nodes change, in two steps, to and fro, while clients come and go (changes).
//
// A history follows from its seed, but for the order of goroutines that are ready at the same
// instant. A scenario is a history of a few steps, for what random ones rarely meet.
package histories
