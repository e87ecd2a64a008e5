// Package frontend gives lock clients of any language a majority of N masters: it speaks Redis, and
// a client that was written for one Redis holds each lock on a quorum.
//
// Each command is one of three things: a step of a handshake, which is answered at once; a change
// of, or a look at, one lock, which package grants makes; or a script, which package luascript
// recognises by what it does, and which is then one of these. Everything else gets Redis's own words
// for an unknown command: clients read them, and go on without it.
//
//	RESP ─> session ─> frontend ─┬─> grants ─> redlock.Client
//	                             └─> luascript
//
// What a client may rely on:
//
//   - A reply of success means that its TTL counts from that reply on.
//   - Nil means that a quorum has answered: taken, or not there. Without a quorum the reply is an
//     error with the code NOQUORUM.
//   - A command that names no owner (DEL, EXPIRE, SET XX) acts on the lock that a quorum shows at
//     that moment, as on one Redis, and on none that is acquired later.
//   - A lock that no reply has reported to a client, since it is gone, is released. Otherwise a lost
//     connection releases nothing but RL.LOCK … KEEP: the TTL decides.
//
// The state of a connection (conn) is changed by Plan alone, or by commands that hold the connection.
package frontend
