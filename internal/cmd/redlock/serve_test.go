//go:build unix

package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/realredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// daemon is a process of serve.
type daemon struct{ *process }

// serves starts serve for some nodes with arguments, and waits until it listens.
func serves(t *testing.T, servers []*fakeredis.Server, args ...string) *daemon {
	t.Helper()
	return listens(launch(t, servers, binary(append([]string{"serve"}, args...)...)))
}

// listens waits until a process of serve listens.
func listens(p *process) *daemon {
	p.t.Helper()
	testkit.Await(p.t, "it listens", func() bool { return testkit.IsClosed(p.ended) || strings.Contains(p.out.String(), "nodes are up") })
	return &daemon{p}
}

// addr is its address.
func (d *daemon) addr() string {
	d.t.Helper()
	words := strings.Fields(d.out.String())
	require.Greater(d.t, len(words), 3, d.err.String())
	return strings.TrimSuffix(words[3], ":")
}

// reload makes it read its files again, and waits until it has, or has failed to.
func (d *daemon) reload() {
	d.t.Helper()
	const done, failed = "has read its files again", "nothing has changed"
	before := strings.Count(d.out.String(), done) + strings.Count(d.err.String(), failed)
	d.signal(syscall.SIGHUP)
	testkit.Await(d.t, "the reload", func() bool {
		return strings.Count(d.out.String(), done)+strings.Count(d.err.String(), failed) > before
	})
}

func (d *daemon) dial() *testkit.TextClient {
	d.t.Helper()
	return testkit.DialText(d.t, d.addr())
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// TestReloadNodes: the passwords of the nodes change with the file; other nodes in it, and other settings, need a restart.
func TestReloadNodes(t *testing.T) {
	t.Parallel()
	a := realredis.Start(t, realredis.Options{Password: "first", Persistent: true})
	conf := filepath.Join(t.TempDir(), "redlock.conf")
	nodes := func(password, more string) string {
		return "nodes redis://:" + password + "@" + a.Addr() + "?persistent=yes" + more + "\n"
	}
	d := serves(t, nil, "-config", write(t, conf, nodes("first", "")), "-listen", filepath.Join(t.TempDir(), "socket"))
	p, admin := d.dial(), testkit.DialText(t, a.Addr())
	p.Must("SET a v NX PX 30000")
	admin.Must("AUTH first", "CONFIG SET requirepass second")
	admin.Do("CLIENT KILL TYPE normal")
	testkit.Await(t, "it is refused", func() bool { return strings.Contains(d.err.String(), "refused the credentials") })
	require.Contains(t, p.Do("SET b v NX PX 30000"), "-NOQUORUM")
	write(t, conf, nodes("second", ",127.0.0.1:1")+"max-ttl 5m\n")
	d.reload()
	testkit.Await(t, "it is warned", func() bool { return strings.Contains(d.err.String(), `settings="[nodes max-ttl]"`) })
	testkit.Await(t, "it is back", func() bool { return p.Do("SET b v NX PX 30000") == "+OK" })
	require.NotContains(t, d.err.String()+d.out.String(), "second")
	d.signal(syscall.SIGQUIT)
	require.Equal(t, exitOK, d.status())
	require.NoFileExists(t, d.addr())
}

// TestLife: a server asked to end is not ready, and serves on for -lame-duck. A second signal cuts that short. The
// supervisor is notified of each step. A users file with a mistake changes nothing, and a connection outlives reloads.
func TestLife(t *testing.T) {
	t.Parallel()
	servers := cluster.Start(t, 3)
	path := filepath.Join(t.TempDir(), "notify")
	supervisor, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	require.NoError(t, err)
	defer supervisor.Close()
	told := func() string {
		b := make([]byte, 256)
		require.NoError(t, supervisor.SetReadDeadline(time.Now().Add(testkit.Patience)))
		n, err := supervisor.Read(b)
		require.NoError(t, err)
		return string(b[:n])
	}
	users := write(t, filepath.Join(t.TempDir(), "users"), "one old app:\n")
	d := listens(launch(t, servers, binary("serve", "-listen", "127.0.0.1:0", "-users", users, "-lame-duck", "1h"), "NOTIFY_SOCKET="+path))
	require.Equal(t, "READY=1", told())
	p := d.dial()
	p.Must("AUTH one old", "SET k v NX PX 30000")
	for i, text := range []string{"one bad app:\none twice app:\n", "one new app:\n"} {
		write(t, users, text)
		d.reload()
		require.Regexp(t, `^RELOADING=1(\nMONOTONIC_USEC=[0-9]+)?$`, told())
		require.Equal(t, "READY=1", told())
		d.dial().Must("AUTH one " + []string{"old", "new"}[i])
		require.Equal(t, 1, strings.Count(d.err.String(), "reload: nothing has changed"), &d.err)
	}
	require.Equal(t, ":1", p.Do("DELEX k IFEQ v"))
	d.signal(syscall.SIGTERM)
	require.Equal(t, "STOPPING=1", told())
	d.dial().Must("AUTH one new", "SET k v NX PX 30000")
	d.signal(syscall.SIGTERM)
	require.Equal(t, exitOK, d.status())
}

// TestSocketMode: a socket has its mode before anybody can connect.
func TestSocketMode(t *testing.T) {
	before := syscall.Umask(0)
	defer syscall.Umask(before)
	path, over, wrong := filepath.Join(t.TempDir(), "s"), make(chan struct{}), make(chan os.FileMode, 1)
	var all sync.WaitGroup
	all.Go(func() {
		for !testkit.IsClosed(over) {
			if info, err := os.Stat(path); err == nil && info.Mode().Perm() != 0o600 {
				select {
				case wrong <- info.Mode():
				default:
				}
			}
		}
	})
	for range 200 {
		l, err := listen("listen", path, 0o600)
		require.NoError(t, err)
		require.NoError(t, l.Close())
	}
	close(over)
	all.Wait()
	require.Empty(t, wrong)
}

// TestActivation: a server takes the sockets of its supervisor, answers its watchdog, and leaves the socket to the next
// server: no connection is refused meanwhile, and no lock is lost.
func TestActivation(t *testing.T) {
	t.Parallel()
	servers := cluster.Start(t, 3)
	dir := t.TempDir()
	supervisor, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "notify"), Net: "unixgram"})
	require.NoError(t, err)
	defer supervisor.Close()
	path := filepath.Join(dir, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	require.NoError(t, err)
	defer l.Close()
	file, err := l.File()
	require.NoError(t, err)
	defer file.Close()
	activate := func() *daemon {
		cmd := exec.Command("sh", "-c", "LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=front.socket exec "+self+" serve")
		cmd.ExtraFiles = []*os.File{file}
		return listens(launch(t, servers, cmd, "NOTIFY_SOCKET="+filepath.Join(dir, "notify"), "WATCHDOG_USEC=100000"))
	}
	one := activate()
	testkit.DialText(t, path).Must("SET k v NX PX 30000")
	two := activate() // beside it
	one.signal(syscall.SIGTERM)
	require.Equal(t, exitOK, one.status())
	require.Equal(t, "+PONG", testkit.DialText(t, path).Do("PING"))
	require.Equal(t, ":1", testkit.DialText(t, path).Do("DELEX k IFEQ v"))
	beats := 0
	b := make([]byte, 256)
	require.NoError(t, supervisor.SetReadDeadline(time.Now().Add(testkit.Patience)))
	for beats < 5 {
		n, err := supervisor.Read(b)
		require.NoError(t, err)
		if string(b[:n]) == "WATCHDOG=1" {
			beats++
		}
	}
	two.signal(syscall.SIGTERM)
	require.Equal(t, exitOK, two.status())
	require.FileExists(t, path)
}

// TestClosedLog: a warning to a closed pipe ends nothing.
func TestClosedLog(t *testing.T) {
	t.Parallel()
	servers := cluster.Start(t, 3)
	socket, users := filepath.Join(t.TempDir(), "s"), write(t, filepath.Join(t.TempDir(), "u"), "a b c:\n")
	cmd := binary("serve", "-listen", socket, "-users", users)
	cmd.Env = environ("REDLOCK_NODES=" + nodesOf(servers))
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	cmd.Stdout, cmd.Stderr = writer, writer
	require.NoError(t, cmd.Start())
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	var c net.Conn
	testkit.Await(t, "it listens", func() bool {
		c, err = net.Dial("unix", socket)
		return err == nil
	})
	require.NoError(t, writer.Close())
	require.NoError(t, reader.Close())
	write(t, users, "wrong\n")
	for range 3 {
		require.NoError(t, cmd.Process.Signal(syscall.SIGHUP))
	}
	p := testkit.NewTextClient(t, c)
	for range 20 {
		p.Must("AUTH a b")
		time.Sleep(5 * time.Millisecond)
	}
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait())
}
