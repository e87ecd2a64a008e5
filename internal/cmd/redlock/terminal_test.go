//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
	"github.com/redlock-go/redlock/internal/test/testkit/pty"
)

// situation is an action of users at a prompt of bash, with a wrapper W before a program.
type situation struct {
	name  string
	needs string // a tool
	do    func(p *pty.Terminal) (seen string)
	want  string // the expected output
}

// answered runs a command, awaits "begun", types something, and returns the output up to the prompt.
func answered(command, typed string) func(p *pty.Terminal) string {
	return func(p *pty.Terminal) string {
		p.Type(command + "\n")
		p.Await("\nbegun\n")
		if typed == pty.Suspend {
			p.Suspend(keeperName)
			return ""
		}
		p.Type(typed)
		return p.Prompt()
	}
}

// shown runs a command.
func shown(command string) func(p *pty.Terminal) string {
	return func(p *pty.Terminal) string { return p.Run(command) }
}

// asks is a program waiting for a line.
const asks = `W sh -c 'echo begun; read a; echo got:$a'`

// after does something, and then shows the result of a command.
func after(do func(p *pty.Terminal) string, command string) func(p *pty.Terminal) string {
	return func(p *pty.Terminal) string {
		do(p)
		return p.Run(command)
	}
}

// resumed answers a program stopped by ^Z, after commands.
func resumed(commands ...string) func(p *pty.Terminal) string {
	return func(p *pty.Terminal) string {
		answered(asks, pty.Suspend)(p)
		for _, command := range commands {
			p.Run(command)
			if command == "bg" {
				stops(p)
			}
		}
		p.Type("fg\n")
		p.Await("got:$a'\n")
		p.Type("hi\n")
		return p.Prompt()
	}
}

// stops waits for the shell's notice of a program that stops because it reads in the background. Under flock it may be
// the program alone that stops, for good: bg makes the program go on, and then flock, and the program may have read in
// between.
func stops(p *pty.Terminal) {
	isFlock, went := strings.HasSuffix(p.T.Name(), "/flock"), time.Now()
	testkit.Await(p.T, "it stops", func() bool {
		shown := p.Run("jobs")
		if !isFlock || !p.HasStopped() {
			went = time.Now()
		}
		return strings.Contains(shown, "Stopped") || time.Since(went) > time.Second
	})
}

var situations = []situation{
	{name: "background", want: "alive\n", do: after(shown("W sleep 0.1 & wait"), "echo alive")},
	{name: "background, late", want: "hi\ngot:hi\n",
		do: answered(`W sh -c 'sleep 0.1; echo begun; sleep 10' & read a; echo got:$a`, "hi\n")},
	{name: "background, reads", want: "hi\ngot:hi\n", do: func(p *pty.Terminal) string {
		p.Run(asks + " &") // begun may be shown before the prompt, or later
		testkit.Await(p.T, "it stops", func() bool { return strings.Contains(p.Run("jobs"), "Stopped") })
		p.Type("fg\n")
		p.Await("got:$a'\n")
		p.Type("hi\n")
		return p.Prompt()
	}},
	{name: "pipeline", want: "x\nx 3\n", do: answered("W sh -c 'echo begun >/dev/tty; seq 3' | (read a </dev/tty; echo $a $(wc -l))", "x\n")},
	{name: "a question on /dev/tty", want: "me\ngot:me:piped\n",
		do: answered("echo piped | W sh -c 'echo begun; read a </dev/tty; read b; echo got:$a:$b'", "me\n")},
	{name: "^Z fg", want: "hi\ngot:hi\n", do: resumed()},
	{name: "^Z bg fg", want: "hi\ngot:hi\n", do: resumed("bg")},
	{name: "^Z ^Z", want: "hi\ngot:hi\n", do: func(p *pty.Terminal) string {
		answered(asks, pty.Suspend)(p)
		p.Type("fg\n")
		p.Await("got:$a'\n")
		p.Resumed()
		p.Suspend(keeperName)
		p.Type("fg\n")
		p.Await("got:$a'\n")
		p.Type("hi\n")
		return p.Prompt()
	}},
	{name: "^Z, other work", want: "hi\ngot:hi\n", do: resumed("stty sane", "ls", "sleep 0.1")},
	{name: "^Z kill", want: "gone\n", do: after(answered(asks, pty.Suspend), "kill %1; while jobs %1 >/dev/null 2>&1; do sleep 0.02; done; echo gone")},
	{name: "^C", want: "130\n", do: after(answered("W sh -c 'echo begun; exec sleep 30'", pty.Interrupt), "echo $?")},
	{name: "^C in a loop", want: "130\n", do: after(answered("for i in 1 2 3; do W sh -c 'echo begun; exec sleep 30'; done; echo on", pty.Interrupt), "echo $?")},
	{name: "^C in a script", want: "^C\n", do: answered(`bash -c 'for i in 1 2 3; do W sh -c "echo begun; exec sleep 30"; done; echo on'`, pty.Interrupt)},
	{name: `^\`, want: "131\n", do: after(answered("W sh -c 'ulimit -c 0; echo begun; exec sleep 30'", pty.Quit), "echo $?")},
	{name: "sh -c and a question", want: "hi\ngot:hi\n", do: answered(`sh -c 'W true; echo begun; read a; echo got:$a'`, "hi\n")},
	{name: "sh -c &", want: "0000000000000006\n", // in the background of a script SIGINT and SIGQUIT are ignored
		do: shown(`sh -c 'W grep SigIgn /proc/self/status & wait' | sed 's/.*\t//'`)},
	{name: "nohup", needs: "nohup", want: "0000000000000001\n",
		do: shown(`nohup W grep SigIgn /proc/self/status 2>&1 | sed -n 's/SigIgn:.*\t//p'`)},
	{name: "make", needs: "make", want: "hi\ngot:hi\n",
		do: answered(`printf 'all:\n\t@W true; echo begun; read a; echo got:$$a\n' >Makefile; make`, "hi\n")},
	{name: "make ^C", needs: "make", want: "alive\n", do: func(p *pty.Terminal) string {
		p.Run(`printf 'all:\n\t@W sh -c "echo begun; exec sleep 30"\n' >Makefile`)
		return after(answered("make", pty.Interrupt), "echo alive")(p)
	}},
	{name: "watch ^C", needs: "watch", want: "several\n", do: func(p *pty.Terminal) string {
		p.Run(`printf 'echo x >>runs; test $(wc -l <runs) -lt 3 || echo be""gun\n' >script`)
		p.Type("TERM=vt100 watch -n 0.1 W sh script\n")
		p.Await("begun")
		p.Type(pty.Interrupt)
		p.Prompt()
		return p.Run("echo several")
	}},
	{name: "timeout --foreground", needs: "timeout", want: "hi\ngot:hi\n", do: answered("timeout --foreground 60 "+asks, "hi\n")},
	{name: "timeout", needs: "timeout", want: "124\n", do: after(shown("timeout 0.3 W sh -c 'sleep 30; true'"), "echo $?")},
	{name: "setsid", needs: "setsid", want: "0\n", do: shown("setsid -w W true; echo $?")},
	{name: "su", needs: "su", want: "0\n", do: shown("su -m -c 'W true'; echo $?")},
	{name: "sudo", needs: "sudo", want: "hi\ngot:hi\n", do: answered("sudo -E HOME=$HOME ~/"+asks, "hi\n")},
	{name: "of sudo", needs: "sudo", want: "hi\ngot:hi\n", do: answered("W sudo sh -c 'echo begun; read a; echo got:$a'", "hi\n")},
	{name: "of sudo ^C", needs: "sudo", want: "130\n", do: after(answered("W sudo sh -c 'echo begun; exec sleep 30'", pty.Interrupt), "echo $?")},
	{name: "as over ssh -t", needs: "script", want: "hi\ngot:hi\n",
		do: answered(`script -qec "bash -c \"W sh -c 'echo begun; read a; echo got:\\\$a'\"" /dev/null`, "hi\n")},
	{name: "/dev/zero", want: "0\n", do: shown("W true </dev/zero; echo $?")},
	{name: "closed files", want: "0\n", do: shown("W true <&- >&- 2>&-; echo $?")},
	{name: "files", want: "open\n", do: shown("W sh -c 'echo open >&7' 3</dev/null 4</dev/null 7>&1")},
	{name: "limits", want: "same\n", do: shown("[ $(ulimit -n; ulimit -Hn) = $(W bash -c 'ulimit -n; ulimit -Hn') ] 2>/dev/null; W bash -c 'ulimit -Sn' | grep -qx $(ulimit -Sn) && echo same")},
	{name: "a script without #!", want: "run\n", do: shown("echo 'echo run' >script; chmod +x script; W ./script")},
	{name: "statuses", want: "3 143 137\n",
		do: shown("(W sh -c 'exit 3'; a=$?; W sh -c 'kill $$'; b=$?; W sh -c 'kill -9 $$'; echo $a $b $?) 2>/dev/null")},
}

// TestTerminal: at a prompt a program behaves under redlock run as under flock.
func TestTerminal(t *testing.T) {
	t.Parallel()
	wrappers := map[string]string{
		"flock":   `exec flock "$HOME/lock$$" "$@"`,
		"redlock": "exec " + self + ` run -q -ttl 20s job$$ -- "$@"`,
	}
	servers := cluster.Start(t, 3)
	for name, text := range wrappers {
		for _, s := range situations {
			t.Run(s.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				for _, tool := range strings.Fields("flock " + s.needs) {
					if _, err := exec.LookPath(tool); err != nil {
						lacks(t, err)
					}
				}
				p := wrapped(t, servers, text)
				seen := s.do(p)
				require.True(t, strings.HasSuffix("\n"+seen, "\n"+s.want), "%q in\n%s", seen, p.Text())
			})
		}
	}
}

// TestTerminalStopped: a program that stops itself stops redlock too, unlike flock. It keeps the lock for as long as
// -stopped allows. After ^Z for longer than the TTL, and fg, the program goes on: the second process does not stop.
func TestTerminalStopped(t *testing.T) {
	t.Parallel()
	servers := cluster.Start(t, 3)
	p := wrapped(t, servers, "exec "+self+` run "$@"`)
	p.Type("W -ttl 20s job -- sh -c 'kill -STOP $$; echo on'\n")
	p.Await("redlock: job: the program is stopped, and keeps the lock\n")
	testkit.Await(t, "the shell says so, before or after", func() bool { return strings.Contains(p.Text(), "Stopped") })
	p.Type("\n")
	p.Prompt()
	awaitHeld(t, servers, "job")
	p.Type("fg\n")
	p.Await("\non\n")
	p.Prompt()
	awaitFree(t, servers, "job")

	p.Type("W -ttl 6s job -- sh -c 'echo begun; read a; echo got:$a'\n")
	p.Await("\nbegun\n")
	p.Suspend(keeperName)
	time.Sleep(7 * time.Second)
	awaitHeld(t, servers, "job")
	p.Type("fg\nhi\n")
	p.Await("\ngot:hi\n")
	p.Prompt()
	require.Equal(t, "0\n", p.Run("echo $?"), p.Text())

	p.Type("W -ttl 20s -kill-after 5s -stopped 200ms job -- sh -c 'kill -STOP $$; echo on'\n")
	p.Await("redlock: job: the program is stopped, and keeps the lock for 200ms\n")
	p.Await("redlock: the lock was lost: the program was stopped for longer than the 200ms of -stopped\n")
	require.Less(t, holders(servers, "job"), 2, "it is released before that is said")
	testkit.Await(t, "the shell knows", func() bool { return strings.Contains(p.Run("jobs; wait %1; echo status:$?"), "status:70") })
}

// TestTerminalOnce: ^C reaches the program once, and redlock waits for it, unlike flock.
func TestTerminalOnce(t *testing.T) {
	t.Parallel()
	servers := cluster.Start(t, 3)
	file := filepath.Join(t.TempDir(), "pid")
	p := wrapped(t, servers, "echo $$ >"+file+"; exec "+self+` run -q -ttl 20s job -- "$@"`)
	p.Type(`W bash -c 'trap "echo int" INT; trap "echo cont" CONT; trap "echo term; exit 5" TERM; sleep 1; echo begun; while :; do sleep 0.01; done'` + "\n")
	p.Await("\nbegun\n")
	redlock := pids(file)[0]
	keeper := children(redlock)[0]
	require.NoError(t, syscall.Kill(keeper, syscall.SIGSTOP)) // it passes nothing on before the program has had it
	p.Type(pty.Interrupt)
	p.Await("int\n")
	require.NoError(t, syscall.Kill(keeper, syscall.SIGCONT))
	p.Await("cont\n") // every signal to the keeper is passed on
	p.Suspend(keeperName)
	require.NoError(t, syscall.Kill(redlock, syscall.SIGTERM))
	p.Type("fg\n")
	p.Await("term\n")
	p.Prompt()
	require.Equal(t, "5\n", p.Run("echo $?"))
	require.Equal(t, 1, strings.Count(p.Text(), "int\n"), p.Text())
}

// TestStoppedEnds: SIGTERM to redlock ends a stopped program if there is no terminal, also beside a shell with jobs.
func TestStoppedEnds(t *testing.T) {
	t.Parallel()
	servers := cluster.Start(t, 3)
	file := filepath.Join(t.TempDir(), "pid")
	cmd := exec.Command("bash", "-c", `set -m; "$0" "$@" & echo $! >`+file+`; wait $!`, self)
	cmd.Args = append(cmd.Args, shell("kill -STOP $$; echo on", flags(30)...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	p := launch(t, servers, cmd)
	testkit.Await(t, "it stops", func() bool { return strings.Contains(p.err.String(), "the program is stopped") })
	require.NoError(t, syscall.Kill(pids(file)[0], syscall.SIGTERM))
	require.Equal(t, 128+15, p.status())
}

// wrapped is a prompt of bash in a directory with a wrapper W.
func wrapped(t *testing.T, servers []*fakeredis.Server, wrapper string) *pty.Terminal {
	dir := t.TempDir()
	syscall.ForkLock.RLock() // a child with the file open for writing would make it busy
	err := os.WriteFile(filepath.Join(dir, "W"), []byte("#!/bin/sh\n"+wrapper+"\n"), 0o700)
	syscall.ForkLock.RUnlock()
	require.NoError(t, err)
	p := pty.Shell(t, environ("REDLOCK_NODES="+nodesOf(servers), "HOME="+dir, "PATH="+dir+":"+os.Getenv("PATH")),
		"bash", "--norc", "--noprofile", "--noediting", "-i")
	p.Run("cd; unset PS2")
	return p
}

// lacks skips a test for want of a tool, or fails it if all tools are required.
func lacks(t *testing.T, why error) {
	if os.Getenv("REDLOCK_REQUIRE_SERVERS") != "" {
		t.Fatal(why)
	}
	t.Skip(why)
}
