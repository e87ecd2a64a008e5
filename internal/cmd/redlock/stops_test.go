//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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

// burn keeps the processors busy until the end of a test.
func burn(t *testing.T, loops int) {
	for range loops {
		p := exec.Command("sh", "-c", "while :; do :; done")
		require.NoError(t, p.Start())
		t.Cleanup(func() { _ = p.Process.Kill(); _ = p.Wait() })
	}
}

// TestStops: redlock, its second process, both, or the program are stopped by SIGSTOP. If the lock is kept meanwhile,
// the program lives on. If both were stopped longer, it gets SIGTERM and may clean up.
func TestStops(t *testing.T) {
	t.Parallel()
	servers := cluster.Start(t, 3)
	times, room := 1, make(chan struct{}, 16)
	if testkit.Long() {
		times = 200
		burn(t, 4)
	}
	for _, c := range []struct {
		name   string
		stops  func(p *process, program int) []int
		ttl    int
		pause  time.Duration
		isLost bool
	}{
		{name: "job", ttl: 6, pause: 7 * time.Second, stops: func(p *process, _ int) []int { return []int{p.Process.Pid} }},
		{name: "job, short", ttl: 9, pause: 3 * time.Second, stops: func(p *process, _ int) []int { return []int{p.Process.Pid} }},
		{name: "keeper", ttl: 9, pause: 2 * time.Second, stops: func(p *process, _ int) []int { return children(p.Process.Pid) }},
		{name: "both", ttl: 9, pause: 2 * time.Second, stops: func(p *process, _ int) []int { return append(children(p.Process.Pid), p.Process.Pid) }},
		{name: "program", ttl: 6, pause: 7 * time.Second, stops: func(_ *process, program int) []int { return []int{program} }},
		{name: "job and program", ttl: 6, pause: 7 * time.Second, stops: func(p *process, program int) []int { return []int{p.Process.Pid, program} }},
		{name: "all", ttl: 6, pause: 7 * time.Second, isLost: true,
			stops: func(p *process, program int) []int { return append(children(p.Process.Pid), p.Process.Pid, program) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var all sync.WaitGroup
			for i := range times {
				all.Go(func() {
					room <- struct{}{}
					defer func() { <-room }()
					file := filepath.Join(t.TempDir(), "ticks")
					cmd := binary("run", "-ttl", strconv.Itoa(c.ttl)+"s", fmt.Sprint(c.name, i), "--", "bash", "-c", ticks)
					p := launch(t, servers, cmd, "FILE="+file)
					awaitLines(t, file, 1)
					stopped := c.stops(p, pids(file)[0])
					for _, pid := range stopped {
						assert.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
					}
					time.Sleep(c.pause)
					for _, pid := range stopped {
						// The first process to go on may end the others.
						err := syscall.Kill(pid, syscall.SIGCONT)
						assert.True(t, err == nil || c.isLost && err == syscall.ESRCH, "%v", err)
					}
					if c.isLost {
						assert.Equal(t, exitLost, p.status(), p.err.String())
						assert.FileExists(t, file+".term")
						return
					}
					awaitLines(t, file, 60)
					assert.NoError(t, os.WriteFile(file+".end", nil, 0o600))
					assert.Zero(t, p.status(), p.err.String())
					assert.NoFileExists(t, file+".term")
				})
			}
			all.Wait()
		})
	}
}

// TestTerminalSuspends: after ^Z for longer than the TTL, and fg, the program goes on: the lock was kept.
func TestTerminalSuspends(t *testing.T) {
	t.Parallel()
	servers := cluster.Start(t, 3)
	times, room := 1, make(chan struct{}, 16)
	if testkit.Long() {
		times = 200
		burn(t, 4)
	}
	for i := range times {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			room <- struct{}{}
			defer func() { <-room }()
			p := wrapped(t, servers, "exec "+self+` run -ttl 6s job$$ -- "$@"`)
			file := filepath.Join(t.TempDir(), "ticks")
			write(t, file+".sh", ticks)
			p.Type("export FILE=" + file + "; W bash $FILE.sh\n")
			defer func() {
				if t.Failed() {
					t.Log(p.Text())
				}
			}()
			awaitLines(t, file, 1)
			p.Suspend(keeperName)
			time.Sleep(7 * time.Second)
			p.Type("fg\n")
			awaitLines(t, file, 40)
			write(t, file+".end", "")
			p.Prompt()
			require.Equal(t, "0\n", p.Run("echo $?"), p.Text())
		})
	}
}

// TestOutages: an outage of the masters ends no program if it is over in time, whenever it begins.
func TestOutages(t *testing.T) {
	t.Parallel()
	kinds, phases, lengths := []string{"down"}, []time.Duration{2900 * time.Millisecond}, []time.Duration{3500 * time.Millisecond}
	if testkit.Long() {
		kinds = append(kinds, "mute")
		phases = append(phases, 100*time.Millisecond, 1600*time.Millisecond, 3200*time.Millisecond)
		lengths = append(lengths, 2*time.Second, 3*time.Second, 3900*time.Millisecond)
	}
	for _, kind := range kinds {
		for _, phase := range phases {
			for _, length := range lengths {
				t.Run(fmt.Sprint(kind, phase, length), func(t *testing.T) {
					t.Parallel()
					servers := cluster.Start(t, 3)
					file := filepath.Join(t.TempDir(), "ticks")
					p := launch(t, servers, binary("run", "job", "--", "bash", "-c", ticks), "FILE="+file)
					awaitLines(t, file, 1)
					time.Sleep(phase) // since the grant, nearly
					for _, s := range servers {
						map[string]func(){"mute": s.Mute, "down": s.Down}[kind]()
					}
					time.Sleep(length)
					for _, s := range servers {
						require.NoError(t, s.Heal())
					}
					awaitLines(t, file, 150)
					write(t, file+".end", "")
					require.Zero(t, p.status(), p.err.String())
					require.NoFileExists(t, file+".term")
				})
			}
		}
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
