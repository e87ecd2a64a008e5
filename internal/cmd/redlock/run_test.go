//go:build unix

package main

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// shell is the arguments to run a text of the shell under a lock.
func shell(text string, settings ...string) []string {
	return append(append([]string{"run"}, settings...), "job", "--", "sh", "-c", text)
}

// process starts a process of redlock that runs a text of the shell.
func process(t *testing.T, servers []*fakeredis.Server, job, text string, settings ...string) *exec.Cmd {
	binary, err := os.Executable()
	assert.NoError(t, err)
	cmd := exec.Command(binary, shell(text, settings...)...)
	cmd.Args[len(cmd.Args)-5] = job
	said := new(testkit.LogSink)
	cmd.Env, cmd.Stderr = environ("REDLOCK_NODES="+nodesOf(servers)), said
	assert.NoError(t, cmd.Start())
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(job, said)
		}
	})
	return cmd
}

// TestRun: the program's environment, exit status and lock.
func TestRun(t *testing.T) {
	servers := cluster.Start(t, 3)
	status, out, _ := redlockOn(t, servers, shell(`echo "$REDLOCK_KEY $REDLOCK_FENCE ${#REDLOCK_TOKEN} $REDLOCK_UNTIL"`, "-max-ttl", "1h", "-nodes", strings.Join(fakeredis.Addrs(servers), ","))...)
	require.Equal(t, exitNoQuorum, status, "a master that has just started has no vote")
	require.Empty(t, out)

	c, began := cluster.Connect(t, fakeredis.Addrs(servers)), time.Now()
	status, out, _ = redlockOn(t, servers, shell(`echo "$REDLOCK_KEY $REDLOCK_FENCE ${#REDLOCK_TOKEN} $REDLOCK_UNTIL"; exit 3`, flags(30)...)...)
	require.Equal(t, 3, status)
	words := strings.Fields(out)
	require.Equal(t, []string{"job", "0"}, words[:2])
	require.Greater(t, words[2], "22", "a token and host:pid")
	until, err := strconv.ParseInt(words[3], 10, 64)
	require.NoError(t, err)
	require.WithinRange(t, time.UnixMilli(until), began, time.Now().Add(30*time.Second))
	awaitFree(t, servers, "job")

	lock := cluster.MustAcquire(t, c, "job", cluster.TTL)
	status, _, errs := redlockOn(t, servers, shell("echo not run", flags(30)...)...)
	require.Equal(t, exitTaken, status)
	require.Contains(t, errs, "taken")
	require.NoError(t, lock.Release(t.Context()))
	for program, want := range map[string]int{"/none/such": 127, "/etc/passwd": 126, "/etc": 126} { // that is there, and no program
		status, _, _ = redlockOn(t, servers, append([]string{"run"}, append(flags(30), "job", "--", program)...)...)
		require.Equal(t, want, status, program)
	}
	status, _, _ = redlockOn(t, servers, shell("kill -KILL $$", flags(30)...)...)
	require.Equal(t, 128+9, status)

	piped := exec.Command(self(t), shell("exit 3", flags(30, "-config", "/dev/stdin")...)...)
	piped.Env, piped.Stdin = environ(), strings.NewReader("nodes "+nodesOf(servers)+"\n") // as from <(…): it is read once
	_ = piped.Run()
	require.Equal(t, 3, statusOfShell(piped))
}

// TestRunTaken: where the lock is taken, -E is the status, also after -wait, and -q says nothing. Of several names all are
// held, or none.
func TestRunTaken(t *testing.T) {
	t.Parallel()
	servers := cluster.Start(t, 3)
	lock := cluster.MustAcquire(t, cluster.Connect(t, fakeredis.Addrs(servers)), "b", cluster.TTL)
	for _, c := range []struct {
		settings string
		status   int
		says     string
	}{
		{"b", exitTaken, "taken"}, {"-q b", exitTaken, ""}, {"-E 3 b", 3, "taken"}, {"-q -E 0 -wait 5s b", 0, ""},
		{"-wait 1us b", exitNoQuorum, "no answer yet"}, {"a b", exitTaken, "taken"}, {"-q -E 1 a b", 1, ""},
	} {
		args := append([]string{"run"}, flags(30, strings.Fields(c.settings)...)...)
		status, out, errs := redlockOn(t, servers, append(args, "--", "echo", "not run")...)
		require.Equal(t, c.status, status, c.settings)
		require.Contains(t, errs, c.says)
		require.True(t, c.says != "" || out+errs == "", out+errs)
		awaitFree(t, servers, "a")
	}
	require.NoError(t, lock.Release(t.Context()))
	ready, gate := filepath.Join(t.TempDir(), "ready"), filepath.Join(t.TempDir(), "gate")
	status := make(chan int, 1)
	go func() {
		args := append([]string{"run"}, flags(30, "a", "b", "--", "sh", "-c", waits, ready, gate)...)
		n, _, _ := redlockOn(t, servers, args...)
		status <- n
	}()
	testkit.Await(t, "the program runs", func() bool { return isThere(ready) })
	require.GreaterOrEqual(t, min(holders(servers, "a"), holders(servers, "b")), 2)
	require.NoError(t, os.WriteFile(gate, nil, 0o600))
	require.Zero(t, testkit.Get(t, status))
	awaitFree(t, servers, "a", "b")
}

// awaitFree waits until no node has any of some keys: a run ends when a quorum has released its lock.
func awaitFree(t *testing.T, servers []*fakeredis.Server, keys ...string) {
	t.Helper()
	for _, key := range keys {
		testkit.Await(t, key+" is free", func() bool { return holders(servers, key) == 0 })
	}
}

// waits is a program of the shell that makes a file and waits for another.
const waits = `: >"$0"; while [ ! -e "$1" ]; do sleep 0.02; done`

func isThere(file string) bool { _, err := os.Stat(file); return err == nil }

// TestRunPermits: with -n 5 five run at once. A sixth is refused, or waits for one of them.
func TestRunPermits(t *testing.T) {
	t.Parallel()
	servers := cluster.Start(t, 3)
	dir := t.TempDir()
	file := func(kind string, i int) string { return filepath.Join(dir, kind+strconv.Itoa(i)) }
	start := func(i int, settings ...string) *exec.Cmd {
		text := strings.NewReplacer("$0", file("ready", i), "$1", file("gate", i)).Replace(waits)
		return process(t, servers, "job", text, flags(30, append(settings, "-n", "5")...)...)
	}
	var all []*exec.Cmd
	for i := range 5 {
		all = append(all, start(i))
		testkit.Await(t, "it runs", func() bool { return isThere(file("ready", i)) })
	}
	status, out, _ := redlockOn(t, servers, shell("echo run", flags(30, "-n", "5")...)...)
	require.Equal(t, exitTaken, status)
	require.Empty(t, out)
	all = append(all, start(5, "-wait", "forever"))
	for i := range all {
		require.NoError(t, os.WriteFile(file("gate", i), nil, 0o600))
		require.NoError(t, all[i].Wait())
	}
	require.FileExists(t, file("ready", 5))
}

// flags is the settings of a lock with a TTL in seconds. A busy machine renews a lock of 30 seconds in time.
func flags(ttl int, more ...string) []string {
	return append([]string{"-ttl", strconv.Itoa(ttl) + "s"}, more...)
}

// TestRunLoses: where the lock cannot be kept the program ends before it does, also one that
// ignores SIGTERM, with all of its group.
func TestRunLoses(t *testing.T) {
	t.Parallel()
	servers := cluster.Start(t, 3)
	file := filepath.Join(t.TempDir(), "pid")
	status := make(chan int, 1)
	began := time.Now()
	go func() {
		n, _, _ := redlockOn(t, servers, shell(`trap "" TERM; (sleep 60) & echo $! >`+file+`; while :; do sleep 0.05; done`, flags(8, "-kill-after", "2s")...)...)
		status <- n
	}()
	testkit.Await(t, "the program runs", func() bool { b, _ := os.ReadFile(file); return len(b) > 0 })
	for _, s := range servers[:2] {
		s.Mute()
	}
	require.Equal(t, exitLost, testkit.Get(t, status))
	require.Less(t, time.Since(began), testkit.Patience/2)
	pid, _ := os.ReadFile(file)
	child, err := strconv.Atoi(strings.TrimSpace(string(pid)))
	require.NoError(t, err)
	testkit.Await(t, "its group ends", func() bool { return !isAlive(child) })
	for _, s := range servers {
		require.NoError(t, s.Heal())
	}
}

// isAlive reports whether a process runs.
func isAlive(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if os.IsNotExist(err) {
		return syscall.Kill(pid, 0) == nil
	}
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

// TestRunInterrupted: an interrupted wait for the lock has the status given by shells, and leaves
// nothing; so has a tool that waits for its input.
func TestRunInterrupted(t *testing.T) {
	t.Parallel()
	servers := cluster.Start(t, 3)
	lock := cluster.MustAcquire(t, cluster.Connect(t, fakeredis.Addrs(servers)), "job", cluster.TTL)
	testkit.Await(t, "all nodes have it", func() bool { return holders(servers, "job") == 3 })
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		asked := servers[0].Count("SET")
		cmd := process(t, servers, "job", "echo not run", flags(30, "-wait", "forever")...)
		testkit.Await(t, "it asks for the lock", func() bool { return servers[0].Count("SET") > asked })
		require.NoError(t, cmd.Process.Signal(s))
		_ = cmd.Wait()
		require.Equal(t, 128+int(s), statusOfShell(cmd))
	}
	for _, args := range []string{"held", "break job"} {
		cmd := exec.Command(self(t), strings.Fields(args)...)
		cmd.Env = environ("REDLOCK_NODES=" + nodesOf(servers))
		in, err := cmd.StdinPipe()
		require.NoError(t, err)
		asked := servers[0].Count("HELLO")
		require.NoError(t, cmd.Start())
		testkit.Await(t, "it has begun", func() bool { return servers[0].Count("HELLO") > asked })
		require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
		testkit.Within(t, testkit.Patience, args, func() { _ = cmd.Wait() })
		require.Equal(t, 128+int(syscall.SIGINT), statusOfShell(cmd))
		_ = in.Close()
	}
	require.NoError(t, lock.Release(t.Context()))
	awaitFree(t, servers, "job")
}

// TestRunIsBroken: where an operator breaks the lock, or the second process is killed, the program may clean up.
func TestRunIsBroken(t *testing.T) {
	t.Parallel()
	servers, ready := cluster.Start(t, 3), filepath.Join(t.TempDir(), "ready")
	for i := range 10 { // the second process and its pipe end in any order
		name := "job" + strconv.Itoa(i)
		cmd := process(t, servers, name, `trap ": >`+ready+name+`done; exit 0" TERM; : >`+ready+name+`; while :; do sleep 0.02; done`, flags(30)...)
		testkit.Await(t, "the program runs", func() bool { return isThere(ready + name) })
		if i == 0 {
			testkit.Await(t, "all nodes have the lock", func() bool { return holders(servers, name) == 3 })
			n, _, _ := redlockOn(t, servers, "break", "-yes", name)
			require.Equal(t, exitOK, n)
		} else {
			require.NoError(t, syscall.Kill(children(cmd.Process.Pid)[0], syscall.SIGKILL))
		}
		testkit.Within(t, testkit.Patience, name, func() { _ = cmd.Wait() })
		require.Equal(t, exitLost, statusOfShell(cmd))
		require.FileExists(t, ready+name+"done")
	}
}

// TestRunKilled: when redlock is killed, all processes of the program end before the lock does. The supervisor
// has seconds for that, on a busy machine too.
func TestRunKilled(t *testing.T) {
	t.Parallel()
	servers := cluster.Start(t, 3)
	times := 4
	if testkit.Long() {
		times = 200
	}
	var all sync.WaitGroup
	dir, room := t.TempDir(), make(chan struct{}, 10)
	for i := range times {
		all.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			name := "killed" + strconv.Itoa(i)
			file := filepath.Join(dir, name)
			cmd := process(t, servers, name, `trap "" TERM; (trap "" TERM HUP; while :; do sleep 0.05; done) & echo $! >`+file+`; wait`, flags(16)...)
			testkit.Await(t, "the program runs", func() bool { b, _ := os.ReadFile(file); return len(b) > 1 })
			time.Sleep(rand.N(500 * time.Millisecond))
			assert.NoError(t, cmd.Process.Kill())
			_ = cmd.Wait()
			text, _ := os.ReadFile(file)
			pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
			awaitFree(t, servers, name)
			assert.False(t, isAlive(pid), "it works beside the next holder")
		})
	}
	all.Wait()
}

// TestRunChildren: the program's processes in the background end with the lock, or are waited for.
// They get no setting of redlock: it may hold passwords.
func TestRunChildren(t *testing.T) {
	servers := cluster.Start(t, 3)
	t.Setenv("REDLOCK_NODES", nodesOf(servers))
	file := filepath.Join(t.TempDir(), "done")
	gate := filepath.Join(t.TempDir(), "gate")
	text := `(while [ ! -e ` + gate + ` ]; do sleep 0.05; done; env >` + file + `) >/dev/null 2>&1 & exit 5`
	status, _, _ := redlockOn(t, servers, shell(text, flags(30)...)...)
	require.Equal(t, 5, status)
	awaitFree(t, servers, "job")
	require.NoError(t, os.WriteFile(gate, nil, 0o600))
	time.Sleep(200 * time.Millisecond) // it would have written by now
	require.NoFileExists(t, file)
	status, _, _ = redlockOn(t, servers, shell(text, flags(30, "-wait-children")...)...)
	require.Equal(t, 5, status)
	vars, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(vars), "REDLOCK_KEY=job")
	require.NotContains(t, string(vars), "REDLOCK_NODES")
}

// TestRunForwards: every signal to redlock is passed on to the program.
func TestRunForwards(t *testing.T) {
	t.Parallel()
	servers := cluster.Start(t, 3)
	dir := t.TempDir()
	for _, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM} {
		number := strconv.Itoa(int(s))
		ready := filepath.Join(dir, number)
		cmd := process(t, servers, "job"+number, `trap "exit 4`+number[len(number)-1:]+`" `+number+`; : >`+ready+`; while :; do sleep 0.02; done`, flags(30)...)
		testkit.Await(t, "the program runs", func() bool { _, err := os.Stat(ready); return err == nil })
		require.NoError(t, cmd.Process.Signal(s))
		_ = cmd.Wait()
		require.Equal(t, "4"+number[len(number)-1:], strconv.Itoa(cmd.ProcessState.ExitCode()), s)
	}
	awaitFree(t, servers, "job1")
}
