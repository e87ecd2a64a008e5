package place

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMain: with arguments of its own the binary is a client that starts a server.
func TestMain(m *testing.M) {
	switch os.Getenv("REDLOCK_BENCH_TEST_PLACE") {
	case "client":
		if err := Separate(); err != nil {
			panic(err)
		}
		_ = os.Setenv("REDLOCK_BENCH_TEST_PLACE", "server")
		print(join(available()), " ")
		cmd := exec.Command(os.Args[0])
		cmd.Stderr = os.Stderr
		if err := Serve(cmd); err != nil {
			panic(err)
		}
		_ = cmd.Wait()
		print(" ", join(available()), " ", Processors())
		return
	case "server":
		print(join(available()))
		return
	}
	os.Exit(m.Run())
}

func join(numbers []int) string { return strings.Join(texts(numbers), ",") }

// TestClientsAndServersAreApart: a client has its half from its start to its end, and a server that it starts the other.
func TestClientsAndServersAreApart(t *testing.T) {
	h := split(available())
	if len(h.clients) == 0 {
		t.Skip("one processor")
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "REDLOCK_BENCH_TEST_PLACE=client", env+"=")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err)
	require.Equal(t, []string{join(h.clients), join(h.servers), join(h.clients)}, strings.Fields(string(out))[:3])
	require.Equal(t, join([]int{len(h.clients) + len(h.servers)}), strings.Fields(string(out))[3])
}

func TestHalves(t *testing.T) {
	require.Equal(t, halves{servers: []int{0, 4}, clients: []int{1, 5}}, split([]int{0, 4, 1, 5, 2}))
	require.Empty(t, split([]int{3}))
	h := split([]int{0, 1, 2, 70})
	require.Equal(t, h, parse(h.String()))
	require.Equal(t, []int{2, 70}, maskOf(h.clients).processors())
	require.Empty(t, parse(shared))
}
