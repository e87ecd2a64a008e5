//go:build unix

package main

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// shell returns the arguments to run a shell text under a lock.
func shell(text string, settings ...string) []string {
	return append(append([]string{"run"}, settings...), "job", "--", "sh", "-c", text)
}

// runs starts a process of redlock to run a shell text under the lock of a job.
func runs(t testing.TB, servers []*fakeredis.Server, job, text string, settings ...string) *process {
	args := shell(text, settings...)
	args[len(args)-5] = job
	return launch(t, servers, binary(args...))
}

// TestRun: the program's environment, exit status and lock.
func TestRun(t *testing.T) {
	servers := cluster.Start(t, 3)
	status, out, _ := redlockOn(t, servers, shell(`echo "$REDLOCK_KEY $REDLOCK_FENCE ${#REDLOCK_TOKEN} $REDLOCK_UNTIL"`, "-max-ttl", "1h", "-nodes", strings.Join(fakeredis.Addrs(servers), ","))...)
	require.Equal(t, exitNoQuorum, status, "a master that has just started has no vote")
	require.Empty(t, out)

	began := time.Now()
	status, out, _ = redlockOn(t, servers, shell(`echo "$REDLOCK_KEY $REDLOCK_FENCE ${#REDLOCK_TOKEN} $REDLOCK_UNTIL"; exit 3`, flags(30)...)...)
	require.Equal(t, 3, status)
	words := strings.Fields(out)
	require.Equal(t, []string{"job", "0"}, words[:2])
	require.Greater(t, words[2], "22", "a token and host:pid")
	until, err := strconv.ParseInt(words[3], 10, 64)
	require.NoError(t, err)
	require.WithinRange(t, time.UnixMilli(until), began, time.Now().Add(30*time.Second))
	awaitFree(t, servers, "job")

	for program, want := range map[string]int{"/none/such": 127, "/etc/passwd": 126, "/etc": 126} { // it exists, and is no program
		status, _, _ = redlockOn(t, servers, append([]string{"run"}, append(flags(30), "job", "--", program)...)...)
		require.Equal(t, want, status, program)
	}
	status, _, _ = redlockOn(t, servers, shell("kill -KILL $$", flags(30)...)...)
	require.Equal(t, 128+9, status)

	piped := binary(shell("exit 3", flags(30, "-config", "/dev/stdin")...)...)
	piped.Stdin = strings.NewReader("nodes " + nodesOf(servers) + "\n") // as from <(…): it is read once
	bare := exec.Command("/usr/bin/env", append([]string{"-u", "PATH"}, binary(shell("exit 3", flags(30, "-nodes", nodesOf(servers))...)...).Args...)...)
	for _, cmd := range []*exec.Cmd{piped, bare} { // without a PATH a program is found where flock finds it
		p := launch(t, nil, cmd)
		require.Equal(t, 3, p.status(), &p.err)
	}
}

// TestRunTaken: if the lock is taken, -E is the status, also after -wait, and -q prints nothing. Of several names all
// are held, or none.
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
	p := launch(t, servers, binary(append([]string{"run"}, flags(30, "a", "b", "--", "sh", "-c", waits, ready, gate)...)...))
	awaitFile(t, ready)
	require.GreaterOrEqual(t, min(holders(servers, "a"), holders(servers, "b")), 2)
	write(t, gate, "")
	require.Zero(t, p.status())
	awaitFree(t, servers, "a", "b")
}

// waits is a shell program: it makes a file and waits for another.
const waits = `: >"$0"; while [ ! -e "$1" ]; do sleep 0.02; done`

// pids returns the first words of the lines written into a file by programs.
func pids(file string) (all []int) {
	text, _ := os.ReadFile(file)
	for line := range strings.Lines(string(text)) {
		word, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		if pid, err := strconv.Atoi(word); err == nil && strings.HasSuffix(line, "\n") {
			all = append(all, pid)
		}
	}
	return all
}

// awaitFile waits until a program has made a file: it runs.
func awaitFile(t testing.TB, file string) {
	t.Helper()
	testkit.Await(t, "the program runs", func() bool { _, err := os.Stat(file); return err == nil })
}

// flags returns the settings of a lock with a TTL in seconds. A busy machine renews a lock of 30 seconds in time.
func flags(ttl int, more ...string) []string {
	return append([]string{"-ttl", strconv.Itoa(ttl) + "s"}, more...)
}

// TestRunInterrupted: an interrupted wait for the lock has the status given by shells, and leaves nothing. The same
// holds for a tool waiting for its input.
func TestRunInterrupted(t *testing.T) {
	t.Parallel()
	servers := cluster.Start(t, 3)
	lock := cluster.MustAcquire(t, cluster.Connect(t, fakeredis.Addrs(servers)), "job", cluster.TTL)
	awaitHeld(t, servers, "job")
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		sets := func() int64 { // a quorum is asked, and of a held lock then only whether it is free
			return servers[0].Count("SET") + servers[1].Count("SET") + servers[2].Count("SET")
		}
		asked := sets()
		p := runs(t, servers, "job", "echo not run", flags(30, "-wait", "forever")...)
		testkit.Await(t, "it asks for the lock", func() bool { return sets() > asked })
		p.signal(s)
		require.Equal(t, 128+int(s), p.status())
	}
	for _, args := range []string{"held", "break job"} {
		cmd := binary(strings.Fields(args)...)
		in, err := cmd.StdinPipe()
		require.NoError(t, err)
		asked := servers[0].Count("HELLO")
		p := launch(t, servers, cmd)
		testkit.Await(t, "it has begun", func() bool { return servers[0].Count("HELLO") > asked })
		p.signal(syscall.SIGINT)
		require.Equal(t, 128+int(syscall.SIGINT), p.status())
		_ = in.Close()
	}
	require.NoError(t, lock.Release(t.Context()))
	awaitFree(t, servers, "job")
}

// TestRunIsBroken: if an operator breaks the lock, or the second process is killed, the program and its child may clean
// up.
func TestRunIsBroken(t *testing.T) {
	t.Parallel()
	servers, dir := cluster.Start(t, 3), t.TempDir()
	for i := range 4 { // the second process and its pipe end in any order
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			name := "job" + strconv.Itoa(i)
			one, other := filepath.Join(dir, name), filepath.Join(dir, name+"-child")
			p := runs(t, servers, name, `f() { trap ": >$1.done; exit 0" TERM; : >$1; while :; do sleep 0.02; done; }; f `+other+` & f `+one, flags(12)...)
			awaitFile(t, one)
			awaitFile(t, other)
			if i == 0 {
				awaitHeld(t, servers, name)
				expect(t, servers, exitOK, "break -yes "+name)
			} else {
				require.NoError(t, syscall.Kill(children(p.Process.Pid)[0], syscall.SIGKILL))
			}
			require.Equal(t, exitLost, p.status())
			require.FileExists(t, one+".done")
			require.FileExists(t, other+".done")
		})
	}
}

// TestRunChildren: the program's processes in the background end with the lock, or are waited for.
func TestRunChildren(t *testing.T) {
	t.Parallel()
	servers := cluster.Start(t, 3)
	file := filepath.Join(t.TempDir(), "done")
	gate := filepath.Join(t.TempDir(), "gate")
	text := `(while [ ! -e ` + gate + ` ]; do sleep 0.05; done; env >` + file + `) >/dev/null 2>&1 & exit 5`
	status, _, _ := redlockOn(t, servers, shell(text, flags(30)...)...)
	require.Equal(t, 5, status)
	awaitFree(t, servers, "job")
	write(t, gate, "")
	time.Sleep(200 * time.Millisecond) // it would have written by now
	require.NoFileExists(t, file)
	status, _, _ = redlockOn(t, servers, shell(text, flags(30, "-wait-children")...)...)
	require.Equal(t, 5, status)
	vars, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(vars), "REDLOCK_KEY=job")
}

// TestRunNests: a program may run redlock too. It gets the settings in variables, but no password. The lock's own four
// variables belong to the innermost lock.
func TestRunNests(t *testing.T) {
	t.Parallel()
	servers := cluster.Start(t, 3)
	status, out, errs := redlockOn(t, servers, "run", "-ttl", "20s", "outer", "--", self, "run", "-ttl", "20s", "inner", "--", "sh", "-c", "echo $REDLOCK_KEY; "+self+" held outer inner")
	require.Zero(t, status, errs)
	require.Regexp(t, `^inner\nouter .*\ninner `, out)
	c := command{vars: map[string]string{"REDLOCK_NODES": "redis://:hunter2@a:1,b:1", "REDLOCK_TTL": "7s", "REDLOCK_TOKEN": "x", "HOME": "/"}}
	r, err := newRunner(c.environment(), []string{"job", "--", "true"})
	require.NoError(t, err)
	vars := r.environ(redlock.Lock{})
	require.Subset(t, vars, []string{"HOME=/", "REDLOCK_TTL=7s", "REDLOCK_TOKEN="})
	require.NotContains(t, strings.Join(vars, " "), "hunter2")
}

// TestRunAtLeast: the lock of a short job stays, also if the job fails or all is killed, and the exit status is the
// job's. Beside -shared another holder has the lock with -shared, and none without.
func TestRunAtLeast(t *testing.T) {
	t.Parallel()
	servers := cluster.Start(t, 3)
	for _, kind := range []string{"", "-shared", "-n 2"} {
		name := "job" + strings.ReplaceAll(kind, " ", "")
		start := func(text, settings string) *process {
			return runs(t, servers, name, text, flags(2, strings.Fields("-at-least 30s "+kind+settings)...)...)
		}
		began := time.Now()
		require.Equal(t, 3, start("exit 3", "").status())
		require.Less(t, time.Since(began), testkit.Patience/2, "it does not wait")
		p := start("kill -KILL $PPID; sleep 1000", "") // the second process
		if kind == "" {
			require.Equal(t, exitTaken, p.status())
		} else {
			require.Equal(t, exitLost, p.status())
		}
		c := cluster.Connect(t, fakeredis.Addrs(servers))
		key := map[string]string{"-n 2": redlock.Permits(name, 2)[0]}[kind]
		state, err := c.Inspect(t.Context(), cmp.Or(key, name))
		require.NoError(t, err)
		require.Greater(t, state.TTL, 3*time.Second)
		if kind == "-shared" {
			require.Equal(t, 2, state.Holders)
			require.Equal(t, exitTaken, runs(t, servers, name, "echo not run", flags(2)...).status())
		}
	}
}

// TestRunForwards: every signal to redlock, or to its second process, is passed on to the program.
func TestRunForwards(t *testing.T) {
	t.Parallel()
	servers := cluster.Start(t, 3)
	dir := t.TempDir()
	for i, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM,
		syscall.SIGHUP, syscall.SIGTERM} {
		name := strconv.Itoa(i) + "-" + strconv.Itoa(int(s))
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ready := filepath.Join(dir, name)
			p := runs(t, servers, name, fmt.Sprintf(`trap "exit %d" %d; : >%s; while :; do sleep 0.02; done`, 40+int(s), int(s), ready), flags(30)...)
			awaitFile(t, ready)
			if i < 7 {
				p.signal(s)
			} else {
				require.NoError(t, syscall.Kill(children(p.Process.Pid)[0], s))
			}
			require.Equal(t, 40+int(s), p.status())
			awaitFree(t, servers, name)
		})
	}
}
