//go:build unix

package main

import (
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

// forwarded is the signals passed on from redlock to its program.
var forwarded = []os.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2,
	syscall.SIGALRM, syscall.SIGCONT, syscall.SIGWINCH, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU,
}

// group is a program and its children: a process group. Its leader is a supervisor, this command
// with another verb. It ends the group when redlock has ended without doing so, by SIGKILL too: it
// reads from a pipe, and then the kernel closes this.
type group struct {
	supervisor *exec.Cmd
	alive      io.WriteCloser
	ended      chan struct{} // closed at the end of the program
}

// start starts a program. If redlock dies, its group has grace from SIGTERM to SIGKILL.
func start(child *exec.Cmd, grace time.Duration) (*group, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	g := &group{supervisor: exec.Command(self, verbSupervise, grace.String()), ended: make(chan struct{})}
	g.supervisor.Env, g.supervisor.Dir = []string{}, "/"
	g.supervisor.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if g.alive, err = g.supervisor.StdinPipe(); err != nil {
		return nil, err
	}
	ready, err := g.supervisor.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := g.supervisor.Start(); err != nil {
		return nil, err
	}
	if _, err := io.ReadFull(ready, make([]byte, 1)); err != nil { // it ignores signals from now on
		g.close()
		return nil, err
	}
	child.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: g.id(), Foreground: isTerminal(child.Stdin)}
	if err := child.Start(); err != nil {
		g.close()
		return nil, err
	}
	go func() {
		_ = child.Wait()
		close(g.ended)
	}()
	return g, nil
}

func (g *group) id() int { return g.supervisor.Process.Pid }

// signal sends a signal to all processes of the group.
func (g *group) signal(s os.Signal) { _ = syscall.Kill(-g.id(), s.(syscall.Signal)) }

// hurry has the supervisor give no more grace: the lock ends.
func (g *group) hurry() { _, _ = g.alive.Write([]byte{0}) }

// close ends the rest of the group, and waits for its end, a second at most.
func (g *group) close() {
	g.signal(syscall.SIGKILL)
	_ = g.supervisor.Wait()
	for range time.Second / childPause {
		if !g.hasOthers() {
			return
		}
		time.Sleep(childPause)
	}
}

// supervise ends the group of this process when its standard input ends.
func supervise(env *environment, grace string) error {
	signal.Ignore(forwarded...)
	left, err := time.ParseDuration(grace)
	if err != nil {
		return usage("supervise is a part of redlock run")
	}
	_, _ = io.WriteString(env.out, ".")
	for {
		if _, err := env.in.Read(make([]byte, 1)); err != nil {
			break
		}
		left = 0
	}
	_ = syscall.Kill(0, syscall.SIGTERM)
	time.Sleep(left)
	return syscall.Kill(0, syscall.SIGKILL)
}

// isTerminal reports whether a program reads from a terminal. Its group then gets the foreground;
// it could not read otherwise.
func isTerminal(in io.Reader) bool {
	file, ok := in.(*os.File)
	if !ok {
		return false
	}
	is, err := file.Stat()
	null, nullErr := os.Stat(os.DevNull)
	return err == nil && nullErr == nil && is.Mode()&os.ModeCharDevice != 0 && !os.SameFile(is, null)
}

// suspend stops a process as a swapping machine does, and resume lets it go on.
func suspend(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }
func resume(p *os.Process) error  { return p.Signal(syscall.SIGCONT) }

// isOf reports whether a process is a member of the group other than its supervisor, by its line in
// /proc.
func (g *group) isOf(pid, state, itsGroup string) bool {
	return itsGroup == strconv.Itoa(g.id()) && pid != itsGroup && state != "Z" && state != "X"
}
