// Package command is what is said to a node and what its answer means: the kinds of
// commands, the forms of them that nodes understand, how each is written, and how a
// reply becomes a vote. It is pure: bytes and values, no sockets, clocks or
// goroutines.
//
//	Kind, Form, Operand ─> Append ─> bytes ──── node ───> reply ─> Read ─> Answer
//	                                                        └─> Refused ─> Remedy
//
// What a node understands is found out when it is connected to (Probes). A command
// that was sent can be read back out of its bytes (Reader), since the operations in
// it may be gone by the time when it has to be said again.
package command
