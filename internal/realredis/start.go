package realredis

import (
	"errors"
	"os"
)

// TB is what Start needs of a *testing.T or *testing.B, so that programs that
// launch servers do not import package testing.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
}

// Start starts one server for a test and kills it when the test ends.
func Start(t TB, opts ...Options) *Server {
	t.Helper()
	return StartN(t, 1, opts...)[0]
}

// StartN starts n servers for a test and kills them when it ends. Each gets the
// options at its index, or the last ones given.
func StartN(t TB, n int, opts ...Options) []*Server {
	t.Helper()
	fleet, err := Launch(n, opts...)
	if errors.Is(err, ErrNoServer) && os.Getenv(EnvRequire) != "1" {
		t.Skipf("%v", err)
	}
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() { _ = fleet.Close() })
	return fleet.Servers
}
