// Package archtest keeps the shape of the module: it has tests and nothing
// else. They read the source of the whole repository and fail when
//
//   - a package imports what its place in the house does not allow,
//   - go.mod requires a module that was not decided on,
//   - a Go file is longer than 500 lines, or redlock.go than 750,
//   - something else stands at the top level than the card lists, or more than five tests do.
//
// The wings, each of which imports those above it here, and nothing below:
//
//	resp  quorum  internal/base      the wire format; the protocol; what everybody uses
//	internal/rules                   decisions without clock, lock or goroutine
//	internal/wire                    what is said to nodes, and what answers mean
//	conn                             what a user meets of nodes
//	internal/client                  one client: groups and calls, waiting, holding, tokens, engine, fleet
//	redlock                          the public API
//	internal/server  internal/cmd    the front end for other languages; the command
//	internal/test  bench             servers, worlds and checks of tests; the benchmark
//
// fleet knows no locks. Only tests, bench, conn/conntest and the masters for trying see the test servers, and so
// redcon: a user of the library compiles a server only where a test imports conn/conntest.
//
// Test files may import anything that go.mod requires. A nested module (a
// directory with a go.mod of its own) has its own dependencies, and only the
// length of its files is checked.
package archtest
