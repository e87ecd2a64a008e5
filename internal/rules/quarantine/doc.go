// Package quarantine decides from when on the vote of a node counts that may have forgotten locks: the "delayed
// restarts" of the algorithm's text. The text leaves them to operators; here each client delays for itself. It is pure:
// what servers say, and instants of one monotonic clock.
//
// # When a node forgets
//
// A node forgets in three ways, and each shows in what its server says (INFO), at a new connection or on one that
// lasts:
//
//   - Its process starts again: another run_id. A node that keeps its data (appendonly yes, appendfsync always) forgets
//     nothing then.
//   - It becomes a replica, loads the data of another server, and is promoted to master: the same run_id. Its
//     replication history has another id then, beside that of the history before. A master that never was a replica
//     has no history before; its own id changes when a replica or a backup first connects, and when the last one has
//     been gone for long, and no data is lost.
//   - It answers as a replica. Then it may have another's data, also where its history does not show it.
//
// # Invariant
//
// Let a lock be granted with a TTL of t, and let a node of its majority forget at F. The node's copy would have ended
// at F + t at the latest. A vote of this node that counts before then may give the lock to a second holder: two such
// nodes of three, and no majority shows the first one.
//
//	F       A holds k for 1 h on nodes 1 and 2 of three. Node 1 restarts; a second later, node 2 does.
//	F+11s   B asks for k. Both have no copy, and grant it. A votes that counts the node after 10 s lets B have it.
//
// So the vote counts for a call from F + t on, where t is no less than the TTL of any other holder of the key. Callers
// of one key use the same options, so they have the same AtLeast: a call's own TTL, which covers its AtLeast, is long
// enough. B above has asked with a TTL of 1 h, as A has, and node 1 counts for it an hour after F. TTLs may differ where
// no option does, and an extension may be longer than its lock: so a vote counts in no call before F and the longest
// TTL of any lock that the client has had without AtLeast, or MaxTTL, which bounds those of all clients. A client
// that knows more than that of others would wait for longer, never for less.
//
// F is taken as late as it may be: when the change is noticed, or a second after a process that is met for the first
// time has started, by its own word.
package quarantine
