package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// TestFiles: with a low limit of open files, clients leave enough for the connections of the nodes. Further clients are
// refused, and a lost node comes back.
func TestFiles(t *testing.T) {
	t.Parallel()
	servers := cluster.Start(t, 3)
	d := listens(launch(t, servers, exec.Command("sh", "-c", "ulimit -n 60; exec "+self+" serve -listen 127.0.0.1:0")))
	testkit.Await(t, "it is warned", func() bool { return strings.Contains(d.err.String(), "clients=19 wanted=16384 limit=60") })
	served := 0
	var first *testkit.TextClient
	for range 60 {
		p := d.dial()
		if p.Do("PING") == "+PONG" {
			served++
			if first == nil {
				first = p
			}
		}
	}
	require.Equal(t, 19, served)
	servers.Down()
	require.NoError(t, servers.Heal())
	testkit.Await(t, "the nodes are back", func() bool { return first.Do("SET k v NX PX 30000") == "+OK" })
}

// TestFirstProcess: as the first process of a container a server takes the ends of orphans.
func TestFirstProcess(t *testing.T) {
	t.Parallel()
	servers := cluster.Start(t, 3)
	cmd := binary("serve", "-listen", "127.0.0.1:0")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	if os.Getuid() != 0 {
		t.Skip("needs root, for a namespace of processes")
	}
	d := listens(launch(t, servers, cmd))
	children := func() string {
		var all strings.Builder
		tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", d.Process.Pid))
		require.NoError(t, err)
		for _, task := range tasks {
			text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", d.Process.Pid, task.Name()))
			all.Write(text)
		}
		return all.String()
	}
	gate := filepath.Join(t.TempDir(), "gate")
	const orphan = "(while [ ! -e $0 ]; do sleep 0.02; done) >/dev/null 2>&1 &"
	out, err := exec.Command("nsenter", "-t", fmt.Sprint(d.Process.Pid), "-p", "sh", "-c", orphan+orphan, gate).CombinedOutput()
	require.NoError(t, err, "%s", out)
	testkit.Await(t, "the orphans are its children", func() bool { return len(strings.Fields(children())) == 2 })
	write(t, gate, "")
	testkit.Await(t, "no zombie is left", func() bool { return children() == "" })
	d.signal(syscall.SIGTERM)
	require.Equal(t, exitOK, d.status())
}

// TestKeepAlive: the end of a client's machine is noticed after 150 s.
func TestKeepAlive(t *testing.T) {
	l, err := listen("listen", "127.0.0.1:0", 0)
	require.NoError(t, err)
	defer l.Close()
	testkit.DialText(t, l.Addr().String())
	c, err := l.Accept()
	require.NoError(t, err)
	defer c.Close()
	raw, err := c.(*net.TCPConn).SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) {
		option := func(level, name int) int { return testkit.Must(syscall.GetsockoptInt(int(fd), level, name))(t) }
		require.Equal(t, 1, option(syscall.SOL_SOCKET, syscall.SO_KEEPALIVE))
		const tcp = syscall.IPPROTO_TCP
		require.Equal(t, 150, option(tcp, syscall.TCP_KEEPIDLE)+option(tcp, syscall.TCP_KEEPCNT)*option(tcp, syscall.TCP_KEEPINTVL))
	}))
}
