package cluster

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
)

// mastersEnv makes a test binary serve fake masters and do nothing else.
const mastersEnv = "REDLOCK_TEST_MASTERS"

const masters = 5

// Main is called by TestMain, in a package whose tests use Masters.
func Main(m *testing.M) {
	if os.Getenv(mastersEnv) != "" {
		serveMasters()
		return
	}
	testkit.ChildrenEndAtOnce()
	// Parallel tests wait for real servers, not for processors. The command line wins.
	_ = flag.Set("test.parallel", "12")
	os.Exit(m.Run())
}

// serveMasters prints the addresses, one a line, and serves until stdin ends.
func serveMasters() {
	for range masters {
		s, err := fakeredis.Start(fakeredis.Options{Password: os.Getenv(PasswordEnv)})
		if err != nil {
			panic(err)
		}
		fmt.Println(s.Addr())
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// Masters starts five fake masters in a child process for the time of a test: their allocations are
// then not taken for the client's.
func Masters(t testing.TB) (addrs []string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), mastersEnv+"=1")
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe() // it ends with this process, and the child with it
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Wait()
	})
	for lines := bufio.NewScanner(stdout); len(addrs) < masters && lines.Scan(); {
		addrs = append(addrs, lines.Text())
	}
	require.Len(t, addrs, masters)
	return addrs
}
