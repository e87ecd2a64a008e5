//go:build !race

package redlock_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAllTestsWithAMarkedPassword: whatever the tests do to clients of the fakes,
// nothing that is printed or logged meanwhile has the password in it. Those of the
// allocations count what a process of masters without a password lets them count.
func TestAllTestsWithAMarkedPassword(t *testing.T) {
	if os.Getenv(marked) != "" {
		t.Skip("this is it")
	}
	if testing.Short() {
		t.Skip("it takes as long as all the others")
	}
	tests := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.timeout", "2m", "-test.skip", "^(TestReal|TestAllocations|Example)")
	tests.Env = append(os.Environ(), marked+"=sesame-zzyzx")
	printed, err := tests.CombinedOutput()
	for _, part := range []string{"sesame", "zzyzx"} {
		require.NotContains(t, string(printed), part)
	}
	require.Contains(t, string(printed), "redlock: node is up", "what is logged is printed")
	require.NoError(t, err, "%s", printed)
}
