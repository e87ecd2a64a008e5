// Package conn is the nodes as the client sees them: sockets that never block
// their caller, batches of commands that are encoded once and written to every
// node, the queue of replies each node owes, and the background work that
// brings a lost node back.
//
// # Who may call what
//
// A [Fleet] has one owner at a time. Every method that touches a socket, a queue
// or a node (Send, SendTo, Sweep, Arm, Check, Close) is called with
// the lock held that was given to [New]; the fleet takes that lock itself only
// when a dial has ended. [Fleet.Wait] is the exception: it is how a goroutine
// without the lock learns that there is something to read.
// Since file descriptors are used and closed only under that one lock, none can
// be closed, and its number given to somebody else, while it is in use.
//
// # What a batch is promised
//
// Batches reach every node in the order in which they were sent, over one
// connection, or not at all. For each node the owner of a batch hears either
// all of its replies in order, or some of them and then one Fail; never both
// for the same reply, and never anything after that. A batch that cannot be
// written at once keeps its place and never makes another node wait.
// Nothing is ever sent twice, and nothing is kept for a node that is down.
//
// # The handshake
//
// All that a new connection needs is written at once and costs one round trip,
// TLS aside: HELLO 3 with AUTH and the client's name, the library's name and
// version, INFO of the server, its replication and its memory, SELECT, the
// probes of the fleet's owner (see [Prober]). A server that refuses HELLO is dialed again at once and greeted in RESP2, with
// AUTH and CLIENT SETNAME. Every reply must fit its command, and none may be left
// over. What a server says in answer to credentials is not shown, nor what it
// says later in a handshake that carried some: it may be repeating them.
//
// Replicas, parts of clusters and sentinels are refused, and so are servers that
// want no password where one is configured, since they may be impostors. Such
// errors are [Permanent]: the node is dialed on, but with one to three seconds
// between the tries. A server whose INFO is forbidden or renamed is taken by what
// it says to HELLO; without its run_id it cannot be told from the same server
// under another address.
//
// # Least privileges
//
// HELLO and AUTH need no permission. Beyond them a user needs, on the keys of the
// locks, on Valkey 9.0, Redis 8.4, and with scripts:
//
//	ACL SETUSER lk on >password resetchannels -@all ~lk:* +set +delifeq
//	ACL SETUSER lk on >password resetchannels -@all ~lk:* +set +delex
//	ACL SETUSER lk on >password resetchannels -@all ~lk:* +set +mget +del +pexpire +evalsha +script|load
//
// Where somebody else loads the scripts, script|load is not needed. The probes
// are for a key that is never set, redlock:probe, which may be out of bounds.
// +info adds the checks above, +select another database, +client|setinfo the
// library's name. What is not allowed is tried all the same, and is a line of the
// server's ACL LOG for each new connection.
//
// # Goroutines
//
// One per node that is down, dialing, and none for a node that is up on the
// raw path (Linux). The portable path has two per connection: one blocked in
// Read, one in Write. All end with Close.
package conn
