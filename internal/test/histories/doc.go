// Package histories has whole clients live through histories in virtual time: clients come and go,
// and use locks in every way there is, beside foreign ones, on failing nodes and links. The events
// are recorded, and checked against the client's promises:
//
//   - no two handles on a key have validity at once (ledger);
//   - no validity lasts longer than a quorum of the nodes has the lock (ledger), nor the context of
//     a lock kept alive longer than its validity (watch);
//   - a free and wanted lock is granted soon (watch);
//   - fencing tokens grow with the grants on a key (ledger);
//   - each key at a node belongs to a live handle, an attempt or a release under way, or a hint
//     (owners);
//   - of the locks on a key granted to a process the youngest alone is handed on (owners);
//   - a lock is called taken only if some node had its key (owners);
//   - after the end no caller waits, no goroutine is left, and no key (end).
//
// In some histories an operator frees keys by hand, hooks, contexts and loggers block for seconds,
// or the callers of a key want it for a moment, each for a time of its own. In some the nodes
// change, in two steps, to and fro, while clients come and go (changes).
//
// A history follows from its seed, but for the order of goroutines ready at the same instant. A
// scenario is a history of a few steps, for events rare in random ones.
package histories
