//go:build unix

package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/test/realredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// daemon is a process of serve.
type daemon struct {
	*exec.Cmd
	t        *testing.T
	out, err testkit.LogSink
	ended    chan struct{}
}

// daemonOf starts serve with arguments, and waits until it listens.
func daemonOf(t *testing.T, vars string, args ...string) *daemon {
	t.Helper()
	binary, err := os.Executable()
	require.NoError(t, err)
	return startDaemon(t, exec.Command(binary, append([]string{"serve"}, args...)...), vars)
}

// startDaemon starts a command of serve.
func startDaemon(t *testing.T, cmd *exec.Cmd, vars string) *daemon {
	t.Helper()
	d := &daemon{Cmd: cmd, t: t, ended: make(chan struct{})}
	d.Env = environ(strings.Fields(vars)...)
	d.Stdout, d.Stderr = &d.out, &d.err
	require.NoError(t, d.Start())
	go func() { _ = d.Wait(); close(d.ended) }()
	t.Cleanup(func() { _ = d.Process.Kill(); <-d.ended })
	testkit.Await(t, "it listens", func() bool {
		select {
		case <-d.ended:
			return true
		default:
			return strings.Contains(d.out.String(), "nodes are up")
		}
	})
	return d
}

// addr is where it listens.
func (d *daemon) addr() string {
	d.t.Helper()
	words := strings.Fields(d.out.String())
	require.Greater(d.t, len(words), 3, d.err.String())
	return strings.TrimSuffix(words[3], ":")
}

func (d *daemon) signal(s syscall.Signal) {
	d.t.Helper()
	require.NoError(d.t, d.Process.Signal(s))
}

// reload has it read its files again, and waits until it has, or has failed to.
func (d *daemon) reload() {
	d.t.Helper()
	const done, failed = "has read its files again", "nothing has changed"
	before := strings.Count(d.out.String(), done) + strings.Count(d.err.String(), failed)
	d.signal(syscall.SIGHUP)
	testkit.Await(d.t, "the reload", func() bool {
		return strings.Count(d.out.String(), done)+strings.Count(d.err.String(), failed) > before
	})
}

// status waits for its end.
func (d *daemon) status() int {
	d.t.Helper()
	testkit.Get(d.t, d.ended)
	return d.ProcessState.ExitCode()
}

// peer is a client of Redis.
type peer struct {
	net.Conn
	in *bufio.Reader
}

func (d *daemon) dial() *peer {
	d.t.Helper()
	network, addr := "tcp", d.addr()
	if addr[0] == '/' {
		network = "unix"
	}
	c, err := net.Dial(network, addr)
	require.NoError(d.t, err)
	d.t.Cleanup(func() { _ = c.Close() })
	return &peer{c, bufio.NewReader(c)}
}

// ask sends a command, and returns its reply: the lines of it, with blanks between.
func (p *peer) ask(command string) string {
	_ = p.SetDeadline(time.Now().Add(testkit.Patience))
	if _, err := io.WriteString(p, command+"\r\n"); err != nil {
		return "end: " + err.Error()
	}
	return p.reply()
}

func (p *peer) reply() string {
	line, err := p.in.ReadString('\n')
	if err != nil {
		return "end: " + err.Error()
	}
	line = strings.TrimSpace(line)
	n, _ := strconv.Atoi(line[1:])
	switch {
	case line[0] == '$' && n >= 0:
		text, _ := p.in.ReadString('\n')
		return strings.TrimSpace(text)
	case line[0] == '*':
		for range n {
			line += " " + p.reply()
		}
	}
	return line
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// TestReload: users and their passwords change, again and again, and one time in three with a mistake, under connections
// that work: none has an error, and none loses a lock that it keeps. SIGPIPE ends nothing.
func TestReload(t *testing.T) {
	t.Parallel()
	const connections, reloads = 500, 20
	servers := cluster.Start(t, 3)
	users := write(t, filepath.Join(t.TempDir(), "users"), "one pw0 app:\n")
	d := daemonOf(t, "REDLOCK_NODES="+nodesOf(servers), "-listen", "127.0.0.1:0", "-users", users)
	peers := make([]*peer, connections)
	for i := range peers {
		peers[i] = d.dial()
		require.Equal(t, "+OK", peers[i].ask("AUTH one pw0"))
	}
	var all sync.WaitGroup
	var over atomic.Bool
	var asked atomic.Int64
	kept := func() (n int) {
		for i := range peers {
			n += holders(servers[:1], fmt.Sprint("app:kept", i))
		}
		return n
	}
	for i, p := range peers {
		all.Go(func() {
			answer := p.ask(fmt.Sprintf("RL.LOCK kept%d 30000 KEEP", i))
			if !assert.Contains(t, answer, "validity-ms") {
				return
			}
			for !over.Load() {
				set, del := p.ask(fmt.Sprintf("SET k%d v NX PX 30000", i)), p.ask(fmt.Sprintf("DELEX k%d IFEQ v", i))
				if !assert.Equal(t, "+OK :1", set+" "+del) {
					return
				}
				asked.Add(1)
			}
		})
	}
	testkit.Await(t, "all work", func() bool { return asked.Load() > connections && kept() == connections })
	password := "pw0"
	for i := range reloads {
		if i%3 == 2 {
			write(t, users, fmt.Sprintf("one bad%d app:\none twice app:\n", i))
		} else {
			password = fmt.Sprint("pw", i)
			write(t, users, "one "+password+" app:\n")
		}
		d.signal(syscall.SIGPIPE)
		d.reload()
		fresh := d.dial()
		require.Equal(t, "+OK", fresh.ask("AUTH one "+password))
		require.NoError(t, fresh.Close())
	}
	over.Store(true)
	all.Wait()
	require.Equal(t, connections, kept())
	require.Equal(t, reloads/3, strings.Count(d.err.String(), "reload: nothing has changed"), d.err.String())
	d.signal(syscall.SIGQUIT)
	require.Equal(t, exitOK, d.status())
	testkit.Await(t, "locks of connections are released at the end", func() bool { return kept() == 0 })
}

// TestReloadNodes: the passwords of the nodes change with the file; other nodes in it, and other settings, need a restart.
func TestReloadNodes(t *testing.T) {
	t.Parallel()
	a := realredis.Start(t, realredis.Options{Password: "first"})
	conf := filepath.Join(t.TempDir(), "redlock.conf")
	nodes := func(password, more string) string {
		return "nodes redis://:" + password + "@" + a.Addr() + "?persistent=yes" + more + "\n"
	}
	d := daemonOf(t, "", "-config", write(t, conf, nodes("first", "")), "-listen", filepath.Join(t.TempDir(), "socket"))
	p := d.dial()
	require.Equal(t, "+OK", p.ask("SET a v NX PX 30000"))
	c, err := net.Dial("tcp", a.Addr())
	require.NoError(t, err)
	defer c.Close()
	admin := &peer{c, bufio.NewReader(c)}
	for _, command := range []string{"AUTH first", "CONFIG SET requirepass second", "CLIENT KILL TYPE normal"} {
		require.NotContains(t, admin.ask(command), "-ERR")
	}
	testkit.Await(t, "it is refused", func() bool { return strings.Contains(d.err.String(), "refused the credentials") })
	require.Contains(t, p.ask("SET b v NX PX 30000"), "-NOQUORUM")
	write(t, conf, nodes("second", ",127.0.0.1:1")+"max-ttl 5m\n")
	d.reload()
	testkit.Await(t, "it is warned", func() bool { return strings.Contains(d.err.String(), `settings="[nodes max-ttl]"`) })
	testkit.Await(t, "it is back", func() bool { return p.ask("SET b v NX PX 30000") == "+OK" })
	require.NotContains(t, d.err.String()+d.out.String(), "second")
	d.signal(syscall.SIGTERM)
	require.Equal(t, exitOK, d.status())
	_, err = os.Stat(d.addr())
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestLife: a server that is told to end is not ready, and serves on for -lame-duck, which a second signal cuts short. Its
// supervisor is told of each step. A log without a reader ends nothing.
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
	d := daemonOf(t, "NOTIFY_SOCKET="+path+" REDLOCK_NODES="+nodesOf(servers), "-listen", "127.0.0.1:0", "-lame-duck", "1h")
	require.Equal(t, "READY=1", told())
	d.reload()
	require.Regexp(t, `^RELOADING=1(\nMONOTONIC_USEC=[0-9]+)?$`, told())
	require.Equal(t, "READY=1", told())
	d.signal(syscall.SIGTERM)
	require.Equal(t, "STOPPING=1", told())
	require.Equal(t, "+OK", d.dial().ask("SET k v NX PX 30000"))
	d.signal(syscall.SIGTERM)
	require.Equal(t, exitOK, d.status())
}

// TestClosedLog: a warning to a closed pipe ends nothing.
func TestClosedLog(t *testing.T) {
	t.Parallel()
	servers := cluster.Start(t, 3)
	binary, err := os.Executable()
	require.NoError(t, err)
	dir := t.TempDir()
	cmd := exec.Command(binary, "serve", "-listen", filepath.Join(dir, "s"), "-users", write(t, filepath.Join(dir, "u"), "a b c:\n"))
	cmd.Env = environ("REDLOCK_NODES=" + nodesOf(servers))
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	cmd.Stdout, cmd.Stderr = writer, writer
	require.NoError(t, cmd.Start())
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	var c net.Conn
	testkit.Await(t, "it listens", func() bool {
		c, err = net.Dial("unix", filepath.Join(dir, "s"))
		return err == nil
	})
	defer c.Close()
	require.NoError(t, writer.Close())
	require.NoError(t, reader.Close())
	write(t, filepath.Join(dir, "u"), "wrong\n")
	for range 3 {
		require.NoError(t, cmd.Process.Signal(syscall.SIGHUP))
	}
	p := &peer{c, bufio.NewReader(c)}
	for range 20 {
		require.Equal(t, "+OK", p.ask("AUTH a b"))
		time.Sleep(5 * time.Millisecond)
	}
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait())
}
