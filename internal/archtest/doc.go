// Package archtest keeps the shape of the module: it has tests and nothing
// else. They read the source of the whole repository and fail when
//
//   - a package imports what its place in the house does not allow,
//   - go.mod requires a module that was not decided on,
//   - a Go file is longer than 500 lines or not formatted by gofmt,
//   - something new stands at the top level.
//
// What may import what, downwards only:
//
//	bench ─> redlock ─┬─> internal/group ─> internal/engine, token, …
//	                  ├─> conn ────> resp, bytebufferpool
//	                  ├─> quorum
//	                  └─> internal/… ─> resp, quorum, conn
//
// redlock.go says what is promised and internal/group does it. Only the root imports
// internal/group. It speaks of locks and never of bytes, so it must not import resp.
// resp and quorum import the standard library alone, so that what the wire
// format and the protocol decide can be tested without a server. conn may use
// internal/… too, but not internal/engine, which is built on conn. Only tests
// and bench see internal/fakeredis, and only it and bench see redcon: a user
// of the library never compiles a server.
//
// Test files may import anything that go.mod requires. A nested module (a
// directory with a go.mod of its own) has its own dependencies and is checked
// for length and format only.
//
// Each check is a function of the files it is given, and is itself tested on
// small bad examples: a check that cannot fail is worth nothing.
package archtest
