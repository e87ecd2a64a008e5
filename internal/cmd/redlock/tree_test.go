//go:build linux

package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// wild is a shell program whose processes go everywhere and ignore the usual signals to end: in its group, in a session
// of its own, by two forks, in the group of timeout. Each notes its PID in a file.
const wild = `
trap "" TERM HUP INT
echo $$ >>$FILE
work='trap "" TERM HUP INT; echo $$ >>$FILE; while :; do sleep 0.3; done'
sh -c "$work" &
setsid sh -c "$work" &
(setsid sh -c "$work" &)
timeout 1000 sh -c "$work" &
while :; do sleep 0.3; done
`

// wildRun is a run of a wild program.
type wildRun struct {
	*process
	file string // the PIDs of its processes
}

// startWild starts a run of a wild program.
func startWild(t testing.TB, servers []*fakeredis.Server, file string, settings ...string) *wildRun {
	args := append(append([]string{"run"}, settings...), filepath.Base(file), "--", "sh", "-c", wild)
	return &wildRun{launch(t, servers, binary(args...), "FILE="+file), file}
}

func alive(file string) (n int) {
	for _, pid := range pids(file) {
		if isRunning(pid) {
			n++
		}
	}
	return n
}

// keeper is the second process of a run, 0 if there is none.
func (r *wildRun) keeper() int {
	for _, pid := range children(r.Process.Pid) {
		return pid
	}
	return 0
}

// TestTreeEnds: all processes started by a program end before its lock does, wherever they went.
func TestTreeEnds(t *testing.T) {
	t.Parallel()
	servers := cluster.Start(t, 3)
	remove := func(t *testing.T, r *wildRun) { expect(t, servers, exitOK, "break -yes "+filepath.Base(r.file)) }
	for name, c := range map[string]struct {
		act       func(t *testing.T, r *wildRun)
		want      int
		isDeleted bool // delete the lock, so it is over before they end
	}{
		"program-killed": {act: func(_ *testing.T, r *wildRun) { _ = syscall.Kill(pids(r.file)[0], syscall.SIGKILL) }, want: 128 + 9},
		"redlock-killed": {act: func(_ *testing.T, r *wildRun) { _ = r.Process.Kill() }, want: 128 + 9},
		"keeper-killed":  {act: func(_ *testing.T, r *wildRun) { _ = syscall.Kill(r.keeper(), syscall.SIGKILL) }, want: exitLost},
		"keeper-stopped": {act: func(_ *testing.T, r *wildRun) { _ = syscall.Kill(r.keeper(), syscall.SIGSTOP) }, want: exitLost},
		"redlock-stopped": {isDeleted: true, want: exitLost, act: func(t *testing.T, r *wildRun) {
			require.NoError(t, r.Process.Signal(syscall.SIGSTOP))
			remove(t, r)
		}},
		"lock-deleted": {isDeleted: true, want: exitLost, act: remove},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			settings := flags(16, "-kill-after", "8s") // a second from SIGKILL to the end
			if c.isDeleted {
				settings = flags(8)
			}
			r := startWild(t, servers, filepath.Join(t.TempDir(), name), settings...)
			began := time.Now()
			testkit.Await(t, "it works", func() bool { return len(pids(r.file)) == 5 })
			awaitHeld(t, servers, name)
			testkit.Await(t, "a kernel without lists of children shows the same", func() bool {
				listed, found := children(r.keeper()), searched(r.keeper())
				return len(listed) > 0 && slices.Equal(slices.Sorted(slices.Values(listed)), slices.Sorted(slices.Values(found)))
			})
			c.act(t, r)
			testkit.Await(t, "they end", func() bool {
				isOver := holders(servers, name) < 2 // checked before the look at the processes
				n := alive(r.file)
				require.False(t, isOver && n > 0 && !c.isDeleted, "%d work beside the next holder, %v after the start", n, time.Since(began))
				return n == 0
			})
			require.Equal(t, c.want, r.status())
		})
	}
}

// TestTreeIsForeign: a process that this user cannot signal is reported, and the run goes on until that process ends.
func TestTreeIsForeign(t *testing.T) {
	t.Parallel()
	path, err := exec.LookPath("setpriv")
	if err != nil || os.Getuid() != 0 {
		lacks(t, errors.Join(err, errors.New("only root starts programs of others")))
	}
	servers := cluster.Start(t, 3)
	file := filepath.Join(t.TempDir(), "pid")
	// Root without its privilege to signal all.
	p := launch(t, servers, exec.Command(path, "--bounding-set", "-kill", self, "run", "-ttl", "30s", "job", "--",
		"sh", "-c", `setpriv --reuid 65534 --clear-groups sleep 1000 & echo $! >`+file+`; wait`))
	testkit.Await(t, "another user runs", func() bool {
		for _, pid := range pids(file) {
			info, err := os.Stat("/proc/" + strconv.Itoa(pid))
			return err == nil && info.Sys().(*syscall.Stat_t).Uid == 65534
		}
		return false
	})
	other := pids(file)[0]
	p.signal(syscall.SIGTERM)
	testkit.Await(t, "the report", func() bool {
		return strings.Contains(p.err.String(), "process "+strconv.Itoa(other)+" belongs to another user")
	})
	require.True(t, isRunning(other))
	awaitHeld(t, servers, "job") // it still runs
	require.NoError(t, syscall.Kill(other, syscall.SIGKILL))
	require.Equal(t, 128+15, p.status())
	require.LessOrEqual(t, strings.Count(p.err.String(), "belongs to another user"), 2, "by each of the two processes")
	awaitFree(t, servers, "job")
}

// TestSignalsAreNotLost: SIGTERM and SIGINT at any moment end the run by this signal, before the program or with it.
func TestSignalsAreNotLost(t *testing.T) {
	t.Parallel()
	servers := cluster.Start(t, 3)
	runs := 30
	if testkit.Long() {
		runs = 1000
	}
	for i := range runs {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			s := []syscall.Signal{syscall.SIGTERM, syscall.SIGINT}[i%2]
			key := "job" + strconv.Itoa(i)
			p := launch(t, servers, binary("run", "-ttl", "20s", key, "--", "sleep", "1000"))
			time.Sleep(time.Duration(i/2%30) * time.Millisecond)
			p.signal(s)
			require.Equal(t, 128+int(s), p.status(), "after %d ms", i/2%30)
			awaitFree(t, servers, key)
		})
	}
}
