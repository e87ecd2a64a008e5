// Package conn has what users of package redlock see of the connections to nodes: the errors of a node, and the
// addresses in a Config. You need it to tell by errors.Is why a node is down; an [Error] is in Stats().Nodes and in a
// QuorumError.
//
// OPERATORS.md, in the directory of this package, is for operators of the nodes: permissions, TLS, restarts, changes of
// nodes, timeouts, and the effects of server errors. Package conntest has masters for tests of programs that use locks.
//
// # What is promised
//
// The error of a node is an [*Error]. errors.Is finds one of the Err variables in it where one applies. Its text holds no
// credential and no line break.
package conn
