// Package frontend gives lock clients of any language a majority of N masters: it speaks Redis, and
// a client written for one Redis holds each lock on a quorum.
//
// Each command is one of three things: a step of a handshake, answered at once; a change of, or a
// look at, one lock, made by package grants; or a script. Package luascript recognises a script by
// its effect, and it is then one of the others. Everything else gets Redis's own words for an
// unknown command: clients read them, and go on without it.
//
//	RESP ─> session ─> frontend ─┬─> grants ─> redlock.Client
//	                             └─> luascript
//
// What a client may rely on:
//
//   - After a reply of success, the TTL counts from this reply on.
//   - Nil means an answer of a quorum: taken, or not there. Without a quorum the reply is an error
//     with the code NOQUORUM.
//   - A command without an owner (DEL, EXPIRE, SET XX) acts on the lock shown by a quorum at this
//     moment, as on one Redis, and on no later one.
//   - A lock is released if its client is gone before any reply has reported the lock. Otherwise a
//     lost connection releases nothing but RL.LOCK … KEEP: the TTL decides.
//
// Only Plan, and commands that hold the connection, change the state of a connection (conn).
package frontend
