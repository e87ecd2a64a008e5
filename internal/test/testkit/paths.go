package testkit

import (
	"os"
	"testing"
)

// OnBothPaths runs a test on the raw and on the portable socket path. Without a raw path, "raw"
// runs the client's fallback.
func OnBothPaths(t *testing.T, test func(t *testing.T, portable bool)) {
	t.Run("raw", func(t *testing.T) { test(t, false) })
	t.Run("portable", func(t *testing.T) { test(t, true) })
}

// Long reports whether the environment asks for the tests of minutes.
func Long() bool { return os.Getenv("REDLOCK_LONG") == "1" }
