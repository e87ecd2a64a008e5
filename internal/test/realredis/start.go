package realredis

import (
	"errors"
	"os"
)

// TB is Start's part of a *testing.T or *testing.B: programs with real servers need not import
// package testing.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
}

// EachKind runs a subtest for each kind of server. Kinds missing on this machine are skipped.
func EachKind[T interface {
	TB
	Run(name string, f func(T)) bool
}](t T, test func(t T, kind Kind)) {
	for _, kind := range Kinds() {
		t.Run(kind.String(), func(t T) {
			_, err := kind.Command()
			skipOrFail(t, err)
			test(t, kind)
		})
	}
}

// Start starts one server for a test and kills it at the end of the test.
func Start(t TB, opts ...Options) *Server {
	t.Helper()
	return StartN(t, 1, opts...)[0]
}

// StartN starts n servers for a test and kills them at its end. Each gets the options at its index,
// or the last ones given.
func StartN(t TB, n int, opts ...Options) []*Server {
	t.Helper()
	fleet, err := Launch(n, opts...)
	skipOrFail(t, err)
	t.Cleanup(func() { _ = fleet.Close() })
	return fleet.Servers
}

// skipOrFail ends a test without its server.
func skipOrFail(t TB, err error) {
	t.Helper()
	if errors.Is(err, errNoKind) || errors.Is(err, ErrNoServer) && os.Getenv(EnvRequire) != "1" {
		t.Skipf("skipped: %v", err)
	}
	if err != nil {
		t.Fatalf("%v", err)
	}
}
