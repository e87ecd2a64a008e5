package luascript

import (
	"crypto/sha1"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestName: the name of a script is its SHA-1, also where only approved algorithms are allowed.
func TestName(t *testing.T) {
	if os.Getenv("GODEBUG") != "fips140=only" {
		for n := range 300 {
			text := strings.Repeat("x", n)
			require.Equal(t, fmt.Sprintf("%x", sha1.Sum([]byte(text))), Name([]byte(text)), n)
		}
		cmd := exec.Command(os.Args[0], "-test.run=^TestName$")
		cmd.Env = append(os.Environ(), "GODEBUG=fips140=only")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return
	}
	require.Equal(t, "a9993e364706816aba3e25717850c26c9cd0d89d", Name([]byte("abc")))
	require.NotEmpty(t, Known())
}
