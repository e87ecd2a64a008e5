package main

import (
	"context"
	"errors"
	"flag"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// TestMain: this binary also runs as a worker of the demo, as redlock run and as its second process. An argument that
// is no flag of a test is a command, so no process started by a test can begin the tests again.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-test.") {
		main()
		return
	}
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGHUP, syscall.SIGQUIT} {
		if signal.Ignored(s) { // in the background of a script, or under nohup; programs started from here get the default
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
	testkit.ChildrenEndAtOnce()
	_ = flag.Set("test.parallel", "16") // unless told otherwise: they wait for other processes most of the time
	os.Exit(m.Run())
}

// command is a call of the command in this process.
type command struct {
	out, err testkit.LogSink
	vars     map[string]string
	in       string
}

func (c *command) run(ctx context.Context, args ...string) int {
	return Main(ctx, c.environment(), args)
}

func (c *command) environment() *environment {
	return &environment{in: strings.NewReader(c.in), out: &c.out, err: &c.err, environ: func() (vars []string) {
		for name, text := range c.vars {
			vars = append(vars, name+"="+text)
		}
		return vars
	}}
}

// patient has nodes answer late: on a busy machine they do.
const patient = "REDLOCK_NODE_TIMEOUT"

// environ is the environment of a process with more variables. It leaves out settings given to the tests themselves:
// they are none of the command's.
func environ(more ...string) []string {
	tests := func(v string) bool { return strings.HasPrefix(v, "REDLOCK_") }
	return append(append(slices.DeleteFunc(os.Environ(), tests), patient+"=10s"), more...)
}

// process is a process of the command.
type process struct {
	*exec.Cmd
	t        testing.TB
	out, err testkit.LogSink
	ended    chan struct{}
}

// launch starts a command for some nodes, with more variables. It ends with the test.
func launch(t testing.TB, servers []*fakeredis.Server, cmd *exec.Cmd, vars ...string) *process {
	p := &process{Cmd: cmd, t: t, ended: make(chan struct{})}
	if servers != nil {
		vars = append(vars, "REDLOCK_NODES="+nodesOf(servers))
	}
	p.Env, p.Stdout, p.Stderr, p.WaitDelay = environ(vars...), &p.out, &p.err, testkit.Promptly
	assert.NoError(t, p.Start())
	go func() { _ = p.Wait(); close(p.ended) }()
	t.Cleanup(func() {
		_ = p.Process.Kill()
		<-p.ended
		if t.Failed() {
			t.Log(p.Args, &p.err)
		}
	})
	return p
}

// self is this binary.
var self, _ = os.Executable()

// binary is the command with arguments.
func binary(args ...string) *exec.Cmd { return exec.Command(self, args...) }

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	require.NoError(p.t, p.Process.Signal(s))
}

// status is the status of an ended process, as in $? of a shell.
func (p *process) status() int {
	p.t.Helper()
	testkit.Get(p.t, p.ended)
	if status := p.ProcessState.Sys().(syscall.WaitStatus); status.Signaled() {
		return 128 + int(status.Signal())
	}
	return p.ProcessState.ExitCode()
}

// redlockOn runs the command for some nodes and returns its status and output.
func redlockOn(t *testing.T, servers []*fakeredis.Server, args ...string) (status int, out, err string) {
	t.Helper()
	if args[0] == "run" { // in a process of its own: it may end by a signal
		p := launch(t, servers, binary(args...))
		return p.status(), p.out.String(), p.err.String()
	}
	return redlockAt(t, nodesOf(servers), args...)
}

// redlockAt runs the command for nodes in this process.
func redlockAt(t *testing.T, nodes string, args ...string) (status int, out, err string) {
	t.Helper()
	c := command{vars: map[string]string{patient: "10s", "REDLOCK_NODES": nodes}}
	testkit.Within(t, 2*testkit.Patience, strings.Join(args, " "), func() { status = c.run(t.Context(), args...) })
	return status, c.out.String(), c.err.String()
}

// expect runs the command for some nodes, requires a status, and returns its output.
func expect(t *testing.T, servers []*fakeredis.Server, want int, args string) string {
	t.Helper()
	status, out, errs := redlockOn(t, servers, strings.Fields(args)...)
	require.Equal(t, want, status, "%s: %s%s", args, out, errs)
	return out
}

func holder(name string) func(*redlock.Config) { return func(c *redlock.Config) { c.Name = name } }

// nodesOf returns the nodes as persistent ones: others have no vote for a minute after their start.
func nodesOf(servers []*fakeredis.Server) string {
	return "redis://" + strings.Join(fakeredis.Addrs(servers), "?persistent=yes,redis://") + "?persistent=yes"
}

// TestTools: an operator looks at a lock, and breaks it.
func TestTools(t *testing.T) {
	t.Parallel()
	servers := cluster.Start(t, 3)
	client := cluster.Connect(t, fakeredis.Addrs(servers), holder("worker-7"))
	lock := cluster.MustAcquire(t, client, "orders", cluster.TTL)
	on := func(want int, args string) string { return expect(t, servers, want, args) }
	out := on(exitOK, "inspect orders")
	require.Contains(t, out, `"orders" is held by worker-7, token digest `)
	require.NotContains(t, out, lock.Token()[:22])
	require.Contains(t, on(exitOK, "inspect -json free"), `"status": "free"`)
	require.True(t, strings.HasPrefix(on(exitFailed, "held orders free"), "orders "))

	require.Contains(t, on(exitFailed, "break orders"), "release it? [y/N]")
	awaitHeld(t, servers, "orders")
	require.Equal(t, 3, strings.Count(on(exitOK, "nodes"), "votes"))

	for _, s := range servers {
		s.Set("eternal", "v", 0)
		s.Set("of a\nday", lock.Token(), 24*time.Hour)
	}
	_, out, _ = redlockOn(t, servers, "held", "of a\nday")
	require.Regexp(t, `^"of a\\nday"  worker-7  \w+  2[34]h\d+m[\d.]+s\n$`, out)
	_, _, errs := redlockOn(t, servers, "break", "-yes", "eternal")
	require.Contains(t, errs, "it has no TTL")
	require.Equal(t, 3, holders(servers, "eternal"))

	var readers []redlock.Lock
	for range 2 {
		readers = append(readers, testkit.Must(client.TryAcquireShared(t.Context(), "table", cluster.TTL))(t))
	}
	// A node that lacked the script, and was late to say so, gets the lock by an extend.
	testkit.Await(t, "both are on all nodes", func() bool {
		for _, l := range readers {
			require.NoError(t, l.Extend(t.Context(), cluster.TTL))
		}
		state, err := client.Inspect(t.Context(), "table")
		return err == nil && !slices.ContainsFunc(state.Nodes, func(n redlock.KeyOnNode) bool { return n.Holders < 2 })
	})
	out = on(exitOK, "inspect table")
	require.Contains(t, out, `"table" is shared by 2 holders (worker-7), the longest for `)
	require.Equal(t, 4, strings.Count(out, "2 holders"), out)
	require.Contains(t, on(exitOK, "inspect -json table"), `"holders": 2`)
	require.Contains(t, on(exitOK, "held table"), "2 holders (worker-7)")
	_, _, errs = redlockOn(t, servers, "break", "-yes", "table")
	require.Contains(t, errs, "break ends locks of one holder")

	servers[0].Down()
	servers[1].Down()
	on(exitNoQuorum, "inspect orders")
	require.Equal(t, 2, strings.Count(on(exitNoQuorum, "nodes"), "down"))
}

func holders(servers []*fakeredis.Server, key string) int {
	return fakeredis.Servers(servers).Holders(key)
}

// awaitHeld waits until all nodes have a key.
func awaitHeld(t testing.TB, servers []*fakeredis.Server, key string) {
	t.Helper()
	testkit.Await(t, "all nodes have "+key, func() bool { return holders(servers, key) == len(servers) })
}

// awaitFree waits until no node has any of some keys: a run ends when a quorum has released its lock.
func awaitFree(t testing.TB, servers []*fakeredis.Server, keys ...string) {
	t.Helper()
	for _, key := range keys {
		testkit.Await(t, key+" is free", func() bool { return holders(servers, key) == 0 })
	}
}

// TestNodesStatus: on a healthy fleet the status is 0, also with late first answers. It is 69 if too few nodes may vote,
// and with -all if one may not.
func TestNodesStatus(t *testing.T) {
	t.Parallel()
	servers := cluster.Start(t, 3)
	young := " -nodes " + strings.Join(fakeredis.Addrs(servers), ",")
	on := func(want int, args string) string { return expect(t, servers, want, args) }
	require.Equal(t, 3, strings.Count(on(exitNoQuorum, "nodes"+young), "no vote for "))
	servers[2].Down()
	on(exitOK, "nodes")
	on(exitNoQuorum, "nodes -all -wait 10ms")
	waited := testkit.InBackground(func() (int, error) {
		status, _, _ := redlockOn(t, servers, "nodes", "-all", "-wait", "1m")
		return status, nil
	})
	time.Sleep(100 * time.Millisecond) // its first look, most likely
	require.NoError(t, servers[2].Heal())
	require.Equal(t, exitOK, testkit.Get(t, waited).Value)

	for _, s := range servers {
		s.Delay(50 * time.Millisecond)
	}
	testkit.Await(t, "a node is asked for a second, perhaps not enough on a busy machine", func() bool {
		status, out, _ := redlockOn(t, servers, "nodes")
		return status == exitOK && strings.Count(out, "votes") == 3
	})
}

// TestToolsWithoutPermissions: a refusal by the nodes is reported as one, not as a missing answer. nodes shows round
// trips with the permissions of a lock alone, for keys of any name.
func TestToolsWithoutPermissions(t *testing.T) {
	t.Parallel()
	servers := cluster.Start(t, 3)
	for _, s := range servers {
		s.Deny("GETRANGE")
		s.AllowKeys("lock:")
	}
	for _, args := range []string{"held lock:a", "break -yes lock:a"} {
		status, _, errs := redlockOn(t, servers, strings.Fields(args)...)
		require.Equal(t, exitNoQuorum, status, args)
		require.Contains(t, errs, "3 of 3 nodes failed", args)
		require.Equal(t, 3, strings.Count(errs, "NOPERM for the command getrange"), errs)
	}
	before := servers[0].Count("PTTL")
	status, out, _ := redlockOn(t, servers, "nodes", "-json")
	require.Equal(t, exitOK, status)
	require.NotRegexp(t, `"round_trip_seconds": 0\b[^.]`, out)
	require.Equal(t, before, servers[0].Count("PTTL"), "it has asked for a key")
}

// TestServe: its message when it listens, and its end in order.
func TestServe(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	c := command{vars: map[string]string{patient: "10s"}}
	status := make(chan int, 1)
	go func() {
		status <- c.run(ctx, "serve", "-embedded", "-listen", "127.0.0.1:0", "-metrics", "127.0.0.1:0")
	}()
	testkit.Await(t, "it listens", func() bool { return strings.Contains(c.out.String(), "of 3 nodes are up") })
	addr := strings.TrimSuffix(strings.Fields(c.out.String())[3], ":")
	require.Equal(t, "+OK", testkit.DialText(t, addr).Do("SET k v NX PX 30000"))
	stop()
	require.Equal(t, exitOK, testkit.Get(t, status))
}

// TestBadInput: each mistake has a status of 64, names the argument, and is found before anything
// listens. No password is shown.
func TestBadInput(t *testing.T) {
	servers := cluster.Start(t, 1)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	readable := filepath.Join(t.TempDir(), "users")
	require.NoError(t, os.WriteFile(readable, []byte("default secret\n"), 0o644))
	replica := cluster.Start(t, 1)
	replica[0].Demote()
	for _, c := range []struct {
		args, want string
	}{
		{"frobnicate", `no command "frobnicate"`},
		{"serve extra", `no argument "extra"`},
		{"serve -embedded", "leave -nodes and -next-nodes out"},
		{"serve -frob", "-frob is no setting; redlock serve -h lists the settings"},
		{"serve -max_ttl 1m", "did you mean max-ttl?"},
		{"serve -ttl 1m", "-ttl is no setting of serve, but of run"},
		{"serve -socket-mode 0999", "octal"},
		{"serve -nodes redis://:hunter2@10.0.0.1:6379", "every user of this machine can list"},
		{"nodes -next-nodes a;redis://:hunter2@10.0.0.1:6379", "give it in REDLOCK_NEXT_NODES"},
		{"nodes -nodes a,b -nodes redis://:hunter2@c", "-nodes is given 2 times: give it once, with ; between groups"},
		{"nodes -nodes a,b;c;", "-nodes has no node in group 3 of 3"},
		{"nodes -next-nodes ,", "-next-nodes has no node"},
		{"nodes -nodes a,b,c;d,a", "both -nodes[0] and -nodes[1] have the node a:6379"},
		{"nodes -next-max-ttl 1h", "-next-max-ttl is set, and -fenced is not"},
		{"serve -listen 127.0.0.1:x", "-listen: "},
		{"serve -nodes " + replica[0].Addr(), "replica"},
		{"serve -users " + readable, "chmod 600"},
		{"serve -users /none", syscall.ENOENT.Error()},
		{"serve -listen-cert /none", "-listen-cert needs -listen-key"},
		{"serve -listen-cert /none -listen-key /none", syscall.ENOENT.Error()},
		{"nodes -tls-ca /none", "there are none"},
		{"nodes -tls-ca /none -nodes rediss://a", syscall.ENOENT.Error()},
		{"nodes -tls-key " + readable + " -tls-cert /none -nodes rediss://a", "other users of this machine can read it"},
		{"inspect", "wants one key"},
		{"break a b", "wants one key"},
		{"fence frob", "init, recover, change or status"},
		{"run name true", "run wants"},
		{"run name -n 5 -- true", `"-n" comes after "name", as a name: settings come before names`},
		{"held a -json", `"-json" comes after "a"`},
		{"nodes all", `no argument "all"`},
		{"break -json a", "-json is no setting of break"},
		{"run -wait soon name -- true", `-wait is "soon"`},
		{"run -ttl 1s -kill-after 2s name -- true", "-kill-after is 2s"},
		{"run -n 3 -shared name -- true", "-shared goes with one name, and without -n"},
		{"run -at-least 2m name -- true", "-at-least is 2m0s, at most the 1m0s of -max-ttl work"},
		{"nodes -node-timeout 1ns", "-node-timeout is 1ns, want 0"},
		{"completion tcsh", "bash, zsh or fish"},
	} {
		if strings.Contains(c.args, readable) && runtime.GOOS == "windows" {
			continue // files have no mode
		}
		status, out, errs := redlockOn(t, servers, strings.Fields(c.args)...)
		require.Equal(t, exitUsage, status, "%s: %s", c.args, errs)
		require.Contains(t, errs, c.want, c.args)
		require.NotContains(t, out+errs, "hunter2")
		require.NotContains(t, out, "serves on", c.args)
	}
	c := command{vars: map[string]string{"REDLOCK_NODES": nodesOf(servers)}, in: strings.Repeat("x", 1<<17)}
	require.Equal(t, exitUsage, c.run(t.Context(), "held"), "what cannot be read is not held")
	for _, args := range []string{"serve -listen " + taken.Addr().String(), "serve -listen 127.0.0.1:0 -metrics " + taken.Addr().String()} {
		status, _, errs := redlockOn(t, servers, strings.Fields(args)...)
		require.Equal(t, exitNoQuorum, status, "it may pass")
		require.Contains(t, errs, "address already in use")
	}
	require.Contains(t, expect(t, servers, exitOK, "help"), "redlock serve")
	for _, sub := range subcommands {
		out := expect(t, servers, exitOK, "help "+sub.name)
		require.Contains(t, out, "\n  redlock "+sub.name, "an example")
		require.LessOrEqual(t, strings.Count(out, "usage: "), 1)
	}
}

// TestCompletion: bash completes commands, and the settings of each.
func TestCompletion(t *testing.T) {
	servers := cluster.Start(t, 1)
	for _, shell := range []string{"bash", "zsh", "fish"} {
		script := expect(t, servers, exitOK, "completion "+shell)
		for _, sub := range subcommands {
			require.Contains(t, script, sub.name)
		}
		require.Contains(t, script, "-wait-children", shell)
		if shell != "bash" {
			continue
		}
		for typed, want := range map[string]string{
			"br": "break", "run -wait-": "-wait-children", "run -verb": "", "serve -drain 5s -no": "-nodes -node-timeout -no-ttl",
		} {
			at := strconv.Itoa(len(strings.Fields(typed)))
			out, err := exec.Command("bash", "-c", script+"\nCOMP_WORDS=(redlock "+typed+")\nCOMP_CWORD="+at+"\n_redlock; echo ${COMPREPLY[*]}").Output()
			if errors.Is(err, exec.ErrNotFound) {
				t.Skip("bash is not here")
			}
			require.NoError(t, err)
			require.Equal(t, want, strings.TrimSpace(string(out)), typed)
		}
	}
}

// awaits waits until a process has said something to its user.
func (p *process) awaits(text string) {
	p.t.Helper()
	testkit.Await(p.t, text, func() bool { return strings.Contains(p.err.String(), text) })
}
