// Package session serves connections of clients that speak Redis: it reads their commands, runs
// them, and writes the replies. It knows no command; [Commands] does.
//
// The idea: clients of any language put the work of a whole process on one connection, and a lock
// takes a round trip to several masters. So the commands of a connection run at the same time, and
// three rules keep what clients may rely on:
//
//  1. Replies leave in the order of the commands.
//  2. Commands with a key in common run one after another.
//  3. A command that is Alone, such as a waiting one, begins after all earlier commands are
//     complete, and later commands begin after its end. It holds its connection, and no other.
//
// Over all connections, only as many commands run at once as are answered well within their time
// (gate).
//
// One goroutine reads each connection. If a client has one command at a time, this goroutine also runs it (own).
// Otherwise others run the commands, and it reads on. The end of a client is noticed at the latest before the reply to
// a grant: the context of its commands ends. An undeliverable reply is undone ([Plan.Undo]): a grant not received by
// its client is released. The goroutine that completes the oldest command writes all complete replies. The others add
// theirs meanwhile.
//
// A message outside commands ([Push]) takes its place behind the commands already there.
//
// Everything is bounded ([Limits]): connections, a command's bytes and arguments, a connection's
// commands and bytes under way, replies included, the bytes of all connections, and a client's time
// to send the rest of a command or to receive a reply. Beyond a bound there is an error. A
// connection full behind a waiting command ends: the end of its client would not be noticed.
//
// Session.mu guards the order of a connection. Commands.Plan runs under it and must not block;
// nothing else of a user does. An idle connection costs a fresh goroutine, and no buffer
// (idleness). Server.mu is taken before Session.mu.
//
// The bytes are decoded by package resp, since it bounds a client's announcements before their use;
// redcon's Reader does not (a bulk of 2^63-1 bytes panics it).
package session
