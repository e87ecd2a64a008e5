//go:build linux

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// ticks is a bash program. It writes its PID into a file again and again until another file exists, and notes SIGTERM
// in a third. It starts no other program: a process stopped between fork and exec would hang its parent.
const ticks = `trap "echo \$\$ >$FILE.term; exit 9" TERM; mkfifo $FILE.fifo; exec 3<>$FILE.fifo
while [ ! -e $FILE.end ]; do echo $$ >>$FILE; read -t 0.02 -u 3; done; exit 0`

// lines is how many lines a file has.
func lines(file string) int {
	text, _ := os.ReadFile(file)
	return bytes.Count(text, []byte("\n"))
}

// awaitLines waits until the program of a file has gone on for some turns.
func awaitLines(t testing.TB, file string, more int) {
	from := lines(file)
	testkit.Await(t, "the program goes on", func() bool { return lines(file) >= from+more })
}

// TestStops: redlock, its second process, both, or the program are stopped by SIGSTOP. If the lock is kept meanwhile,
// the program lives on. If both were stopped longer, it gets SIGTERM and may clean up.
func TestStops(t *testing.T) {
	t.Parallel()
	servers := cluster.Start(t, 3)
	for _, c := range []struct {
		name   string
		stops  func(p *process, program int) []int
		ttl    int
		pause  time.Duration
		isLost bool
	}{
		{name: "keeper", ttl: 9, pause: 2 * time.Second, stops: func(p *process, _ int) []int { return children(p.Process.Pid) }},
		{name: "both", ttl: 9, pause: 2 * time.Second, stops: func(p *process, _ int) []int { return append(children(p.Process.Pid), p.Process.Pid) }},
		{name: "program", ttl: 6, pause: 7 * time.Second, stops: func(_ *process, program int) []int { return []int{program} }},
		{name: "job and program", ttl: 6, pause: 7 * time.Second, stops: func(p *process, program int) []int { return []int{p.Process.Pid, program} }},
		{name: "all", ttl: 6, pause: 7 * time.Second, isLost: true,
			stops: func(p *process, program int) []int { return append(children(p.Process.Pid), p.Process.Pid, program) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "ticks")
			p := launch(t, servers, binary("run", "-ttl", strconv.Itoa(c.ttl)+"s", c.name, "--", "bash", "-c", ticks), "FILE="+file)
			awaitLines(t, file, 1)
			stopped := c.stops(p, pids(file)[0])
			for _, pid := range stopped {
				require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
			}
			time.Sleep(c.pause)
			for _, pid := range stopped {
				// The first process to go on may end the others.
				err := syscall.Kill(pid, syscall.SIGCONT)
				require.True(t, err == nil || c.isLost && err == syscall.ESRCH, "%v", err)
			}
			if c.isLost {
				require.Equal(t, exitLost, p.status(), &p.err)
				require.FileExists(t, file+".term")
				return
			}
			requireGoesOn(t, p, file, 60)
		})
	}
}

// requireGoesOn lets the program of a file go on for some turns, and end: it got no SIGTERM.
func requireGoesOn(t *testing.T, p *process, file string, turns int) {
	t.Helper()
	awaitLines(t, file, turns)
	write(t, file+".end", "")
	require.Zero(t, p.status(), &p.err)
	require.NoFileExists(t, file+".term")
}

// TestOutages: an outage of the masters ends no program if it is over in time, and a longer one does: by SIGTERM, and
// before the lock ends.
func TestOutages(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		begin         func(*fakeredis.Server)
		phase, length time.Duration // no length: it does not end
	}{
		{"down", (*fakeredis.Server).Down, 2900 * time.Millisecond, 3500 * time.Millisecond},
		{"mute", (*fakeredis.Server).Mute, 1600 * time.Millisecond, 3 * time.Second},
		{"mute for good", (*fakeredis.Server).Mute, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			servers := cluster.Start(t, 3)
			file := filepath.Join(t.TempDir(), "ticks")
			p := launch(t, servers, binary("run", "job", "--", "bash", "-c", ticks), "FILE="+file)
			awaitLines(t, file, 1)
			awaitHeld(t, servers, "job") // by the slowest node too: a quorum was enough for the program
			time.Sleep(c.phase)          // since the grant, nearly
			for _, s := range servers {
				c.begin(s)
			}
			if c.length == 0 {
				testkit.Await(t, "SIGTERM", func() bool { return lines(file+".term") > 0 || holders(servers, "job") == 0 })
				require.Equal(t, 3, holders(servers, "job"), "the program ends first")
				require.Equal(t, exitLost, p.status(), &p.err)
				return
			}
			time.Sleep(c.length)
			for _, s := range servers {
				require.NoError(t, s.Heal())
			}
			requireGoesOn(t, p, file, 150)
		})
	}
}

// TestRunWithoutProc: in a chroot without /proc redlock runs, as flock does, and ends the program at least.
func TestRunWithoutProc(t *testing.T) {
	t.Parallel()
	if err := exec.Command("unshare", "-m", "mount", "-t", "tmpfs", "none", "/proc").Run(); err != nil {
		lacks(t, err)
	}
	servers := cluster.Start(t, 3)
	hidden := func(args ...string) *process {
		text := `mount -t tmpfs none /proc && exec "$0" run "$@"`
		return launch(t, servers, exec.Command("unshare", append([]string{"-m", "sh", "-c", text, self}, args...)...))
	}
	p := hidden("-ttl", "20s", "job", "--", "sh", "-c", "exit 4")
	require.Equal(t, 4, p.status(), &p.err)
	require.Contains(t, p.err.String(), "there is no /proc")
	file := filepath.Join(t.TempDir(), "ready")
	p = hidden("-ttl", "6s", "job", "--", "sh", "-c", "trap 'exit 5' TERM; : >"+file+"; while :; do sleep 0.05; done")
	awaitFile(t, file)
	expect(t, servers, exitOK, "break -yes job")
	require.Equal(t, exitLost, p.status(), &p.err)
}
