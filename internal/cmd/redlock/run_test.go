//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/fakeredis"
	"github.com/redlock-go/redlock/internal/testkit"
	"github.com/redlock-go/redlock/internal/testkit/cluster"
)

// shell is the arguments that run a text of the shell under a lock.
func shell(text string, settings ...string) []string {
	return append(append([]string{"run"}, settings...), "job", "--", "sh", "-c", text)
}

// TestRun: the program's environment, exit status and lock.
func TestRun(t *testing.T) {
	servers := cluster.Start(t, 3)
	status, out, _ := redlockOn(t, servers, shell(`echo "$REDLOCK_KEY $REDLOCK_FENCE ${#REDLOCK_TOKEN} $REDLOCK_UNTIL"`, "-max-ttl", "1h", "-nodes", strings.Join(fakeredis.Addrs(servers), ","))...)
	require.Equal(t, exitNoQuorum, status, "a master that has just started has no vote")
	require.Empty(t, out)

	c := cluster.Connect(t, fakeredis.Addrs(servers))
	status, out, _ = redlockOn(t, servers, shell(`echo "$REDLOCK_KEY $REDLOCK_FENCE ${#REDLOCK_TOKEN} $REDLOCK_UNTIL"; exit 3`, flags(5)...)...)
	require.Equal(t, 3, status)
	words := strings.Fields(out)
	require.Equal(t, []string{"job", "0", "22"}, words[:3])
	until, err := strconv.ParseInt(words[3], 10, 64)
	require.NoError(t, err)
	require.WithinDuration(t, time.Now().Add(5*time.Second), time.UnixMilli(until), 5*time.Second)
	require.Zero(t, holders(servers, "job"))

	lock := cluster.MustAcquire(t, c, "job", cluster.TTL)
	status, _, errs := redlockOn(t, servers, shell("echo not run", flags(5)...)...)
	require.Equal(t, exitTaken, status)
	require.Contains(t, errs, "taken")
	status, _, _ = redlockOn(t, servers, shell("echo not run", flags(5, "-wait", "30ms")...)...)
	require.Equal(t, exitTaken, status)
	require.NoError(t, lock.Release(t.Context()))
	status, _, _ = redlockOn(t, servers, append([]string{"run"}, append(flags(5), "job", "--", "/none/such")...)...)
	require.Equal(t, 127, status)
	status, _, _ = redlockOn(t, servers, shell("kill -KILL $$", flags(5)...)...)
	require.Equal(t, 128+9, status)
}

// flags is the settings of a lock with a TTL in seconds.
func flags(ttl int, more ...string) []string {
	seconds := strconv.Itoa(ttl) + "s"
	return append([]string{"-ttl", seconds}, more...)
}

// TestRunLoses: where the lock cannot be kept the program ends before it does, also one that does
// not heed SIGTERM, with all of its group.
func TestRunLoses(t *testing.T) {
	t.Parallel()
	servers := cluster.Start(t, 3)
	file := filepath.Join(t.TempDir(), "pid")
	status := make(chan int, 1)
	began := time.Now()
	go func() {
		n, _, _ := redlockOn(t, servers, shell(`trap "" TERM; (sleep 60) & echo $! >`+file+`; while :; do sleep 0.05; done`, flags(2, "-kill-after", "500ms")...)...)
		status <- n
	}()
	testkit.Await(t, "the program runs", func() bool { b, _ := os.ReadFile(file); return len(b) > 0 })
	for _, s := range servers[:2] {
		s.Mute()
	}
	require.Equal(t, exitLost, testkit.Get(t, status))
	require.Less(t, time.Since(began), 10*time.Second)
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

// TestRunIsBroken: an operator who breaks the lock ends the program.
func TestRunIsBroken(t *testing.T) {
	t.Parallel()
	servers := cluster.Start(t, 3)
	status := make(chan int, 1)
	go func() {
		n, out, _ := redlockOn(t, servers, shell(`trap "echo cleaned up; exit 0" TERM; while :; do sleep 0.02; done`, flags(1)...)...)
		if !strings.Contains(out, "cleaned up") {
			n = -1
		}
		status <- n
	}()
	testkit.Await(t, "the lock is held", func() bool { return holders(servers, "job") == 3 })
	n, _, _ := redlockOn(t, servers, "break", "-yes", "job")
	require.Equal(t, exitOK, n)
	require.Equal(t, exitLost, testkit.Get(t, status))
}

// TestRunForwards: every signal that redlock gets is the program's.
func TestRunForwards(t *testing.T) {
	t.Parallel()
	servers := cluster.Start(t, 3)
	binary, err := os.Executable()
	require.NoError(t, err)
	dir := t.TempDir()
	for _, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM} {
		number := strconv.Itoa(int(s))
		ready := filepath.Join(dir, number)
		cmd := exec.Command(binary, shell(`trap "exit 4`+number[len(number)-1:]+`" `+number+`; : >`+ready+`; while :; do sleep 0.02; done`, flags(5)...)...)
		cmd.Args[len(cmd.Args)-5] = "job" + number
		cmd.Env = append(os.Environ(), "REDLOCK_NODES="+nodesOf(servers))
		require.NoError(t, cmd.Start())
		testkit.Await(t, "the program runs", func() bool { _, err := os.Stat(ready); return err == nil })
		require.NoError(t, cmd.Process.Signal(s))
		_ = cmd.Wait()
		require.Equal(t, "4"+number[len(number)-1:], strconv.Itoa(cmd.ProcessState.ExitCode()), s)
	}
	require.Zero(t, holders(servers, "job1"))
}
