// Package conn is the nodes as a redlock client sees them: addresses, connections,
// the handshake, the queue of replies that each node owes, and the reconnects.
//
// The first half of this page is for operators: how to run the nodes in production.
// What it says of Nodes, TLS, MaxTTL and so on are fields of redlock.Config. The
// second half, from Ownership on, is for the engineers of this module.
//
// # Addresses
//
// A node is written as one of
//
//	host:port
//	redis://user:password@host:port/database
//	rediss://user:password@host:port/database    the same over TLS
//	unix:///path/to/socket?db=database
//
// The default port is 6379. A password in a URL writes / as %2F, ? as %3F, # as %23
// and % as %25. Two addresses of one server are an error, since the server would vote
// twice.
//
// No credential appears in an error, a log line or a %v. What a server answers to a
// handshake with credentials is not shown either: the answer may repeat them.
//
// # TLS, credentials and dialers
//
// TLS 1.2 is the least version. The server's name is checked, unless a tls.Config of
// yours sets InsecureSkipVerify.
//
//   - TLS holds the certificate authority and the client certificate.
//   - TLSFor returns a configuration for one node. It is asked at every dial, so
//     certificates may change while the program runs.
//   - Credentials returns a user and a password. It is asked at every dial, for
//     secrets that rotate, and wins over the URL.
//   - Dialer opens connections in another way, through a tunnel for instance.
//
// One rediss:// node, or a Dialer, moves all nodes of the client from raw sockets to
// net.Conn.
//
// # The handshake
//
// A new connection sends all of its handshake at once, which costs one round trip
// after TCP and TLS: HELLO 3 with credentials and client name, the library's name and
// version, INFO (server, replication, memory), SELECT, and the probes. A server that
// refuses HELLO is dialed again at once and greeted in RESP2.
//
// The handshake refuses replicas, nodes of a cluster (no redirect is ever followed),
// sentinels, and a server that is already connected under another address. redlock.New
// returns these as errors. A password that the server does not ask for is refused too:
// the server may be an impostor. A node that may evict keys is only warned about
// through the Logger: set its maxmemory-policy to noeviction.
//
// A node that cannot be reached is no error of redlock.New. Its vote fails until it is
// up; Node.Err and the Logger tell why. If every node refuses for a reason that only a
// person can mend, redlock.New fails and names the reasons: credentials, permissions,
// protected mode, commands of the handshake that the servers refuse with ERR, another
// protocol than RESP, a certificate that is not trusted, TLS on a plain port. A server that
// does not know HELLO, CLIENT, INFO or a native command is a node all the same: less is known
// of it. Redis does not answer a TLS handshake
// on a plain port. A handshake without an answer after a quarter of DialTimeout therefore
// opens a second connection, which sends a PING in the clear, without credentials.
//
// # Native commands and scripts
//
// Comparing a token before deleting its key takes a script on most servers. Newer
// ones have commands for it: DELIFEQ on Valkey 9, DELEX with IFEQ on Redis 8.4 for
// releases, and SET with IFEQ on both and on Valkey 8.1 for extends. Probes try these
// commands at every connect, on the key redlock:probe, which is never set. Version
// numbers are not asked, since forks, proxies and access lists differ from them.
// Nodes with native commands and nodes with scripts may form one quorum.
// Config.Scripted turns native commands off.
//
// # Least privileges
//
// HELLO and AUTH need no permission. The tests read the lists from this page, take each
// permission of each of them away and see the loss: an error, or a warning in the log. That
// of Redis 8.4 was tested on a simulated server only.
//
//	Valkey 9:   ACL SETUSER locker on >password resetkeys resetchannels -@all ~lock:* +info +set +delifeq
//	Redis 8.4:  ACL SETUSER locker on >password resetkeys resetchannels -@all ~lock:* +info +set +delex
//	others:     ACL SETUSER locker on >password resetkeys resetchannels -@all ~lock:* +info +set +evalsha +script|load +mget +pexpire +del
//
// +info is for the restart guard, and for the checks that two nodes are not one server.
// Without it locks work, and the guard sees no restart of the node: a node that has
// forgotten locks which are still held votes at once. The log warns of that at every connect.
// With MaxTTL or Fenced the node is refused.
//
// Further permissions, each with what it is for:
//
//   - +select: databases other than 0.
//   - +client|setname and +client|setinfo: names in CLIENT LIST.
//   - +getrange and +pttl: Inspect and Attach of the root package. Without them only these
//     fail.
//   - +client|tracking, +client|caching and +pttl: callers that wait for a lock are woken when
//     it is freed. Without them they ask again and again.
//   - +evalsha, +script|load, +set, +pexpire, +del, +zadd, +zrem, +zrange, +zcard, +zscore and
//     +exists: processes that wait for a lock are served in order. Without them they are
//     woken in no order. The others need the permissions for waking, too.
//
// The log names a node that lacks one of the last two groups, once. The tests take each
// permission of them away. With all of them, for every kind of server:
//
//	ACL SETUSER locker on >password resetkeys resetchannels -@all ~lock:* +info +set +evalsha +script|load +mget +pexpire +del +client|tracking +client|caching +pttl +zadd +zrem +zrange +zcard +zscore +exists
//
// A fenced client needs the permissions of the third line on all servers, on the locked keys
// and on the set of the tokens:
//
//	ACL SETUSER locker on >password resetkeys resetchannels -@all ~lock:* ~redlock:fence +info +set +evalsha +script|load +mget +pexpire +del +exists +time +zadd +zscore +zrangebyscore +zrevrange +zremrangebyscore
//
// script|load is not needed where another user has loaded the scripts. A command
// without permission is tried on every new connection all the same, so it leaves lines
// in ACL LOG. The key redlock:probe need not be within the key pattern.
//
// # Waiting
//
// Processes that wait for a lock queue up on one node, and are told by nodes when the lock is
// freed. All of it is advice: it decides which process asks for the lock when, and the votes
// decide which one has it.
//
//   - Name the nodes alike in all clients. The node of the queue follows from the
//     key and the addresses as they are written in Nodes, in any order. Clients that
//     write 10.0.0.1 and cache-1 for one node may queue up on different ones; they then
//     compete for the lock, as clients of other libraries do.
//   - Keys appear beside that of a lock which is waited for: the queue,
//     <key>:redlock:queue, a ticket of each process, <key>:redlock:ticket:<id>, and
//     <key>:redlock:gap, by which one process of a queue leaves the lock free for all. A node
//     that refuses the script of the queue has <key>:redlock:gate in their place. They expire by
//     themselves, after a minute at the latest, and a client that is closed leaves no place in
//     a queue. Key patterns of access lists that end in * cover them.
//   - A process that is killed at the head of a queue keeps the others waiting for a second.
//     One that waits asks a quorum itself once a second, in the order of the queue or not.
//   - The node of the queue is one that answers, pushes, and is not slower than four times the
//     median of the nodes and 3 ms more. Clients that see this differently, since the network
//     between them and a node is slow, have a queue each until it mends.
//   - Tracking is switched on for a connection when a caller first waits, with OPTIN and
//     NOLOOP. The server then remembers the keys of locks that are waited for, up to
//     tracking-table-max-keys. One that forgets some costs their waiters an attempt.
//   - A node that is greeted in RESP2, or whose pushes a proxy drops, tells nothing.
//     Another node does so in its place.
//
// # Restart guard
//
// A master that restarts without its data grants locks that are still held. The
// algorithm's text asks operators to delay such a restart for longer than the longest
// TTL. This client does the waiting itself. The guard compares the run_id of each new
// connection with the last one. A node with a new run_id is in quarantine: it is sent
// all commands and has no vote, until the longest TTL that this client has used, and
// its drift, have passed on the client's monotonic clock. Then it votes again by
// itself.
//
// The guard has two gaps: a client that starts after the restart has seen no change,
// and other clients may use longer TTLs. MaxTTL closes both. Set it to the same value
// in all clients. It bounds every TTL and makes the guard strict: the quarantine lasts
// for MaxTTL and its drift, and a node that is met for the first time is in quarantine
// until the server has been up for that long by its own account.
//
// The price of the guard is availability. After a restart of a majority there are no
// locks until the quarantine ends, also if the nodes were restarted one after another:
// before each further restart, wait until Node.Guarded of the last one is 0. With
// MaxTTL there are no locks either when all servers are started for the first time.
//
// No guard, and no fencing token, sees a server that goes back to an older state under the
// same run_id: a replica that lags behind and is made a master, or a virtual machine that is
// reset to a snapshot. Let such a server start anew, which gives it another run_id.
//
// A node with appendonly yes and appendfsync always forgets nothing. Say so with
// ?persistent=yes at the end of its URL, and it is never in quarantine. TrustRestarts
// turns the guard off for all nodes.
//
// # What is left behind
//
// A release that could not reach a node, because the connection was lost or the node
// was away, is handed to the node first thing on its next connection (hinted handoff).
// A release that a node refuses for now, with BUSY or MISCONF for instance, is tried
// again about once a second. So a key normally does not wait for its TTL. It does wait
//
//   - where a node misses more than 1 MiB of keys and tokens, about 16,000 keys of 40
//     bytes: the first ones are kept, the rest are dropped;
//   - where the client was closed before the node came back;
//   - where a node refuses the release for good, with NOPERM for instance. Release may
//     be called again if it returned an error.
//
// # Server errors
//
// An error is never a vote for or against a lock: the node's vote fails. Some errors
// have further effects:
//
//   - NOSCRIPT: the script is loaded and the call repeated, once, on the same
//     connection. The node's vote is then its answer to that.
//   - NOPERM or an unknown command, for a native command: the call is repeated as a
//     script, and scripts are used until the next connection.
//   - NOPERM otherwise: a failed vote. In a handshake the node is down, and the error
//     names the missing command.
//   - An error about one of several keys that share a script call: the call is
//     repeated in smaller calls, at last key by key. Callers of other keys lose nothing.
//   - OOM: the node grants no acquires. Releases and extends go on.
//   - BUSY, MISCONF, NOREPLICAS: a failed vote. A release is tried again later, see
//     above.
//   - WRONGTYPE and unknown errors: a failed vote, no more.
//   - LOADING: the node is down, and dialed with backoff, at most 2 s apart.
//   - READONLY, MASTERDOWN, MOVED, ASK, CROSSSLOT, TRYAGAIN, CLUSTERDOWN, NOAUTH,
//     WRONGPASS, DENIED (protected mode): the connection is closed. Only a person can mend
//     this, so the node is dialed every 1 to 3 s. So is one that answers first in no RESP or
//     no TLS, or with a certificate that is not trusted.
//   - too many clients, other protocol errors, a reply that does not fit its command: the
//     connection is closed, and dialed with backoff.
//   - No answer within NodeTimeout: a failed vote. The late reply is read and dropped.
//   - No answer within StallTimeout: the connection is closed, and dialed with
//     backoff. Pushes are no answers.
//
// # Ownership
//
// A [Fleet] has one owner at a time. Every method that touches a socket, a queue or a
// node (Send, SendTo, Sweep, Arm, Check, Close) is called with the lock held that was
// given to [New]. The fleet takes that lock itself only when a dial has ended.
// [Fleet.Wait] is the exception: a goroutine without the lock waits there for
// something to read.
//
// File descriptors are used and closed under that one lock. So no descriptor can be
// closed, and its number used again by the process, while it is in use.
//
// # What a batch is promised
//
// Batches reach a node in the order in which they were sent, over one connection, or
// not at all. For each node the owner of a batch hears all of its replies in order, or
// some of them and then one Fail. It never hears both for one reply, and nothing after
// a Fail. A batch that cannot be written at once keeps its place and never makes
// another node wait. Nothing is sent twice, and nothing is kept for a node that is
// down. The hints above are kept by the owner, not here.
//
// # Pushes
//
// On a connection in RESP3 a server may send pushes, frames that answer no command,
// between any two replies. The owner hears of each, in its place among the replies,
// by Config.OnPush. No number and no size of pushes ends a connection: one Sweep reads
// 64 KiB of each node at most and leaves the rest to the next, and a push that is too
// large to be decoded is skipped while it arrives. A push that is malformed does end
// it, as a reply does, and so does any push in RESP2.
//
// What an owner sets up for pushes lives as long as a connection. Fleet.Connection
// tells one from the next, and Fleet.Speaks3 whether pushes can come at all.
//
// # Commands are opaque
//
// This package knows no locks. A [Form] is a number that tells in which encoding a
// node takes its commands, and a [Prober] finds it out in the handshake.
//
// # Goroutines
//
// A node that is down has one goroutine, which dials. A node that is up has none on
// the raw path (Linux), and two on the portable path, one in Read and one in Write.
// All of them end with Close.
package conn
