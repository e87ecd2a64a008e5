// Package session serves connections of clients that speak Redis: it reads their commands, runs
// them, and writes the replies. It knows no command; [Commands] does.
//
// The idea: clients of any language put the work of a whole process on one connection, and a lock
// takes a round trip to several masters. So the commands of a connection run at the same time, and
// what clients may rely on is kept by three rules:
//
//  1. Replies leave in the order of the commands.
//  2. Commands that name the same key run one after another, also those that name several.
//  3. A command that is Alone, such as one that waits, runs when all before it are complete, and
//     those after it begin when it is: it holds its connection, and no other.
//
// Of all connections as many commands run as are answered well within their time (gate).
//
// One goroutine reads each connection. A client that sends one command at a time has it run by that
// goroutine (own); otherwise others run the commands, and it reads on. A client that is gone
// is noticed, at the latest before the reply to a grant: the context of its commands ends. A reply that cannot be written any more is undone
// ([Plan.Undo]): a grant that no client has received is released. The goroutine that completes
// the oldest command writes all replies that are complete; the others add theirs meanwhile.
//
// A message that answers no command ([Push]) takes its place behind those that have arrived.
//
// Everything is bounded ([Limits]): connections, a command's bytes and arguments, the commands and
// the bytes that a connection may have under way, replies included, the bytes of all connections,
// and how long a client may take to send the rest of a command or to receive a reply. What exceeds a bound gets an error. A
// connection that is full behind a command that waits ends: that its client has gone would not be noticed.
//
// Session.mu guards the order of a connection. Commands.Plan runs under it and must not block;
// nothing else of a user does. An idle connection costs a goroutine that has not run a command, and no
// buffer (idleness). Server.mu is taken before Session.mu.
//
// The bytes are decoded by package resp, since it bounds what a client announces before it is
// used; redcon's Reader does not (a bulk of 2^63-1 bytes panics it).
package session
