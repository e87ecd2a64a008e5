// Package quarantine decides when the vote of a node counts again after the node may have forgotten locks. These are
// the "delayed restarts" of the algorithm's text. The text leaves them to operators; here each client delays for
// itself. The package is pure: its input is what servers say, and instants of one monotonic clock.
//
// # When a node forgets
//
// A node forgets in three ways. Each shows in its server's answer to INFO, on a new connection or on a lasting one:
//
//   - Its process starts again. It then has another run_id. A node that keeps its data (appendonly yes, appendfsync
//     always) forgets nothing then.
//   - It becomes a replica, loads the data of another server, and is promoted to master. It keeps its run_id, but its
//     replication history has another id, beside the id of the history before. A master that was never a replica has no
//     history before. Its own id changes when a replica or a backup first connects, and when the last one has been gone
//     for long; no data is lost then.
//   - It answers as a replica. Then it may have the data of another server, even if its history does not show it.
//
// # Invariant
//
// Let a lock be granted with a TTL of t, and let a node of its majority forget at F. The node's copy would have ended
// at F + t at the latest. If the node's vote counts before then, it may give the lock to a second holder: with two such
// nodes of three, no majority shows the first holder.
//
//	F       A holds k for 1 h on nodes 1 and 2 of three. Node 1 restarts; a second later, node 2 does.
//	F+11s   B asks for k. Both have no copy, and grant it. A votes that counts the node after 10 s lets B have it.
//
// So the vote counts for a call from F + t on, with t no less than the TTL of any other holder of the key. Callers of
// one key use the same options, so they have the same AtLeast. A call's own TTL covers its AtLeast, and so is long
// enough. B above has asked with a TTL of 1 h, like A, and node 1 counts for it an hour after F. Without an option,
// TTLs may differ, and an extension may be longer than its lock. So a vote counts in no call before F plus a bound:
// MaxTTL, which bounds the TTLs of all clients, or else the longest TTL of any lock that the client has had without
// AtLeast. A client with more knowledge of the other clients' TTLs would wait longer, never less.
//
// F is assumed to be as late as possible: the instant at which the change is noticed, or for a process met for the
// first time a second after its start, by its own word.
package quarantine
