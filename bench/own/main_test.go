package main

import (
	"os/exec"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/test/realredis"
)

// TestRealOwnDriver: the example has a row beside redlock's, with pairs and no failure.
func TestRealOwnDriver(t *testing.T) {
	_ = realredis.Start(t) // or it is skipped: real masters run its script
	out, err := exec.Command("go", "run", ".", "-redis", "-scenario", "uncontended", "-c", "2", "-d", "100ms", "-warmup", "20ms").CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, driver := range []string{"mine", "redlock"} {
		require.Regexp(t, regexp.MustCompile(`(?m)^ *`+driver+` (! )? *[1-9]`), string(out))
	}
}
