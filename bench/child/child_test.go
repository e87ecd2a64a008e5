package child

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/test/testkit"
)

const (
	env = "REDLOCK_BENCH_TEST_CHILD"
	// orphan makes the test binary a parent that waits to be killed.
	orphan = "REDLOCK_BENCH_TEST_ORPHAN"
)

func TestMain(m *testing.M) {
	testkit.ChildrenEndAtOnce()
	if os.Getenv(orphan) != "" {
		_ = os.Unsetenv(orphan)
		p, printed, err := Start(env, "1", 1)
		if err != nil {
			panic(err)
		}
		fmt.Println(printed[0])
		_ = p.Wait() // for ever: its standard input stays open
		return
	}
	Serve(env, func(value string) error {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		fmt.Println(ln.Addr())
		for orders := bufio.NewScanner(os.Stdin); orders.Scan(); {
			fmt.Println(value, orders.Text())
		}
		return nil
	})
	os.Exit(m.Run())
}

func TestAChildAnswersUntilItIsClosed(t *testing.T) {
	p, printed, err := Start(env, "hello", 1)
	require.NoError(t, err)
	c, err := net.Dial("tcp", printed[0])
	require.NoError(t, err)
	defer c.Close()
	answer, err := p.Ask("world")
	require.NoError(t, err)
	require.Equal(t, "hello world", answer)
	require.NoError(t, p.Close(), "the process ends by itself, and well")
	_, err = net.Dial("tcp", printed[0])
	require.Error(t, err)
}

// The child holds the standard error that it inherits until it ends. So when a
// pipe in its place ends, it has.
func TestAChildEndsWithAParentThatIsKilled(t *testing.T) {
	read, write, err := os.Pipe()
	require.NoError(t, err)
	defer read.Close()
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), orphan+"=1")
	parent.Stderr = write
	stdout, err := parent.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, parent.Start())
	require.NoError(t, write.Close())
	lines := bufio.NewScanner(stdout)
	require.True(t, lines.Scan(), "the child is up")

	require.NoError(t, parent.Process.Kill())
	printed, err := io.ReadAll(read)
	require.NoError(t, err)
	require.Empty(t, string(printed))
	require.Error(t, parent.Wait(), "it was killed")
	_, err = net.Dial("tcp", lines.Text())
	require.Error(t, err)
}
