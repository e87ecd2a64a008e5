// Package archtest keeps the shape of the module: it has tests and nothing else. They read the
// source of the whole repository and fail when
//
//   - a package imports more than its place in the house allows,
//   - go.mod requires an undecided module,
//   - a Go file is longer than 500 lines, or redlock.go than 900,
//   - the top level has more than the listed names, or more than five tests.
//
// The wings; each imports only those above it here:
//
//	resp  quorum  internal/base      the wire format; the protocol; what everybody uses
//	internal/rules                   decisions without clock, lock or goroutine
//	internal/wire                    what is said to nodes, and what answers mean
//	conn                             the connections to nodes, and what users meet of them
//	internal/client                  one client: groups and calls, waiting, holding, tokens, engine
//	redlock                          the public API
//	internal/server  internal/cmd    the front end for other languages; the command
//	internal/test  bench             servers, worlds and checks of tests; the benchmark
//
// conn knows no locks. Only tests, bench, conn/conntest and the masters for trying see the test
// servers, and so redcon: a user of the library compiles a server only where a test imports conn/conntest.
//
// Test files may import all modules of go.mod. A nested module (a directory with a go.mod of its
// own) has its own dependencies, and only the length of its files is checked.
package archtest
