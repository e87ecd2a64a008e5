// Package fakeredis is a Redis master inside the process: it keeps keys with their times to live,
// speaks RESP2 and RESP3 over real sockets, and fails on demand. Tests use it to see the rare
// events of real servers. The benchmarks use it where no server is installed, so it is fast, too:
// one lock and one write for each batch of pipelined commands, and no allocation for a lock
// client's commands.
//
// The wire format is redcon's, but the loop around it is our own: redcon's server copies each
// command to the heap, and writes after a whole read, where a fault has to hold, cut or reset
// exactly one reply.
//
// Its answers are checked against real servers by one conformance suite for both. It has the commands
// of the client, and a few for tests. It knows the scripts of packages command and fencing by their
// texts and acts like them in Go; there is no Lua here.
//
// # Tracking
//
// CLIENT TRACKING knows ON and OFF, with OPTIN and NOLOOP. Keys read are registered and their
// changes reported as by real servers. Three things are easily overlooked there. An expired key is
// reported only at its removal, in a cleaning cycle or by a command that touches it. One's own
// command that touches it removes it silently under NOLOOP. CLIENT TRACKING is no error in RESP2,
// where nothing is ever reported. FaultPushes and Forge are the faults.
//
// # Locks
//
// Server.mu guards everything of a server: keys, faults, scripts, counters, and the shared parts of
// a connection. It is held while a batch runs, never across a read, a write or a hook. outbox.mu
// guards the replies still owed by a connection, and is never held together with it.
package fakeredis
