package testkit

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// apartEnv names the test for another process.
const apartEnv = "REDLOCK_TEST_APART"

// Apart runs a test with its subtests in another process. A panic on a goroutine of the client ends
// this process, and fails this test alone. The caller is a test, not a subtest.
func Apart(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	if os.Getenv(apartEnv) == t.Name() {
		test(t)
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*Patience)
	defer cancel()
	child := exec.CommandContext(ctx, os.Args[0], "-test.v", "-test.run", "^"+t.Name()+"$", "-test.timeout", (3 * Patience).String())
	child.Env = append(os.Environ(), apartEnv+"="+t.Name(),
		"GORACE="+os.Getenv("GORACE")+" atexit_sleep_ms=0") // a second otherwise
	output, err := child.CombinedOutput()
	require.NoError(t, err, "%s", excerpt(string(output)))
	require.Contains(t, string(output), "--- PASS: "+t.Name(), "it did not run")
	if Long() { // its output is searched for secrets
		t.Log(string(output))
	}
}

// excerpt is the beginning and the end of a text, without the ends of long lines.
func excerpt(text string) string {
	const line, part = 200, 8 << 10
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = l[:min(len(l), line)]
	}
	text = strings.Join(lines, "\n")
	if len(text) > 2*part {
		text = text[:part] + "\n[...]\n" + text[len(text)-part:]
	}
	return text
}
