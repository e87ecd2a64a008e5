// Package archtest keeps the shape of the module: it has tests and nothing
// else. They read the source of the whole repository and fail when
//
//   - a package imports what its place in the house does not allow,
//   - go.mod requires a module that was not decided on,
//   - a Go file is longer than 500 lines, or redlock.go than 750,
//   - something else stands at the top level than the card lists, or more than five tests do.
//
// The allowed imports, downwards only:
//
//	bench ─> redlock ─┬─> internal/client/router ─> internal/client/group ─> internal/client/engine, lease, …
//	                  ├─> conn, quorum
//	                  └─> internal/… ─> resp, quorum, conn; internal/client/fleet ─> bytebufferpool
//
// The root package says what is promised and internal/client/group, which only the root and the
// router may import, does it. resp and quorum import the standard library alone, so that the
// wire format and the protocol can be tested without a server. internal/client/fleet knows no locks. Only tests, bench and
// conn/conntest see the test servers, and so redcon: a user of the library compiles a server
// only where a test imports conn/conntest.
//
// Test files may import anything that go.mod requires. A nested module (a
// directory with a go.mod of its own) has its own dependencies, and only the
// length of its files is checked.
package archtest
