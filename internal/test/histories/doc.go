// Package histories has whole clients live through histories in virtual time: clients come and go,
// and use locks in every way there is, beside foreign ones, on failing nodes and links. The events
// are recorded, and checked against the client's promises:
//
//   - no two handles on a key have validity at once (ledger);
//   - no validity lasts longer than a quorum of the nodes has the lock (ledger), nor the context of
//     a lock kept alive longer than its validity (watch);
//   - a free and wanted lock is granted soon, and callers outside the queue have their turn
//     (watch);
//   - fencing tokens grow with the grants on a key (ledger);
//   - after the end no caller waits, no goroutine is left, and no key (end).
//
// In some histories the nodes change, in two steps, to and fro, while clients come and go
// (changes).
//
// A history follows from its seed, but for the order of goroutines ready at the same instant. A
// scenario is a history of a few steps, for events rare in random ones.
package histories
