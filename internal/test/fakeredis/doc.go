// Package fakeredis is a Redis master inside the process: it keeps keys with
// their times to live, speaks RESP2 and RESP3 over real sockets, and fails on
// demand. Tests use it to see what a real server rarely shows, and the
// benchmarks use it where no server is installed, so it is also made to be
// fast: one lock and one write for each batch of pipelined commands, and no
// allocation for a command that a lock client sends.
//
// The wire format is redcon's, but the loop around it is our own: redcon's
// server copies each command to the heap, and writes when it has served a whole
// read, where a fault has to hold, cut or reset exactly one reply.
//
// Its answers are checked against real servers by one conformance suite,
// which runs on both. It knows the scripts of packages command and fencing
// by their texts and does what they do in Go; there is no Lua here.
//
// # Tracking
//
// CLIENT TRACKING knows ON and OFF, with OPTIN and NOLOOP. Keys that are read are
// registered and their changes reported as by real servers, in which three things are
// easily overlooked: an expired key is reported only when it is removed, in a
// cleaning cycle or because a command touches it; one's own command that touches
// it removes it silently under NOLOOP; and CLIENT TRACKING is no error in RESP2,
// where nothing is ever reported. FaultPushes, Forge and CleanEvery are the faults.
//
// # Locks
//
// Server.mu guards everything of a server: keys, faults, scripts, counters,
// and the parts of a connection that others look at. It is held while a batch
// runs, never across a read, a write or a hook. outbox.mu, which guards the
// replies a connection still owes, is never held together with it.
package fakeredis
