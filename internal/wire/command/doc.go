// Package command writes the commands for nodes and reads their replies. It has the kinds of commands, the forms
// understood by nodes, the encoding of each, and the way from a reply to a vote. It is pure: bytes and values, no
// sockets, clocks or goroutines.
//
//	Kind, Form, Operand ─> Append ─> bytes ──── node ───> reply ─> Read ─> Answer
//	                                                        └─> Refused ─> Remedy
//
// Probes find, on each new connection, the forms understood by the node. A Reader reads the operands of a command from
// its bytes: a command may have to be sent again after its operations are gone.
package command
