package harness

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/bench/proxy"
)

// orphanEnv makes the test binary a parent of masters that waits to be killed.
const orphanEnv = "REDLOCK_BENCH_TEST_ORPHAN"

func TestMain(m *testing.M) {
	// The processes that tests start would each sleep a second at their end.
	if os.Getenv("GORACE") == "" {
		_ = os.Setenv("GORACE", "atexit_sleep_ms=0")
	}
	if os.Getenv(orphanEnv) != "" {
		_ = os.Unsetenv(orphanEnv)
		masters, err := StartMasters(1)
		if err != nil {
			panic(err)
		}
		fmt.Println(masters.Addrs[0])
		_ = masters.cmd.Wait() // for ever, since nobody closes their stdin
		return
	}
	ServeIfMasters()
	proxy.ServeIfProxy()
	os.Exit(m.Run())
}

func TestMastersServeUntilClosed(t *testing.T) {
	m, err := StartMasters(2)
	require.NoError(t, err)
	require.Len(t, m.Addrs, 2)
	for _, addr := range m.Addrs {
		what, _, err := serverInfo(t.Context(), addr)
		require.NoError(t, err)
		require.NotEmpty(t, what)
	}
	require.NoError(t, m.Close(), "the process ends by itself, and well")
	for _, addr := range m.Addrs {
		_, err := net.Dial("tcp", addr)
		require.Error(t, err)
	}
}

// The masters hold the standard error that they inherit until they end. So
// when a pipe in its place ends, they have.
func TestMastersEndWithAParentThatIsKilled(t *testing.T) {
	read, write, err := os.Pipe()
	require.NoError(t, err)
	defer read.Close()
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), orphanEnv+"=1")
	parent.Stderr = write
	stdout, err := parent.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, parent.Start())
	require.NoError(t, write.Close())

	lines := bufio.NewScanner(stdout)
	require.True(t, lines.Scan(), "the masters are up")
	addr := lines.Text()
	c, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	require.NoError(t, c.Close())

	require.NoError(t, parent.Process.Kill())
	said, err := io.ReadAll(read)
	require.NoError(t, err)
	require.Empty(t, string(said))
	require.Error(t, parent.Wait(), "it was killed")
	_, err = net.Dial("tcp", addr)
	require.Error(t, err)
}
