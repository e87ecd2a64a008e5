// Package child runs this binary once more, as a server in another process, so that neither its
// CPU nor its allocations are counted as the client's. The two exchange lines: the child prints
// where it listens, then it answers orders.
package child

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// grace is how long a child may take to end.
const grace = 10 * time.Second

// Process is a child. The zero value is none.
type Process struct {
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	answers *bufio.Scanner
}

// Start starts a child that finds the value in its environment, and returns the
// lines that it prints first. The program must call [Serve] before all else.
func Start(env, value string, lines int) (*Process, []string, error) {
	return StartBy((*exec.Cmd).Start, env, value, lines)
}

// StartBy is Start where start starts the process, on chosen processors for instance.
func StartBy(start func(*exec.Cmd) error, env, value string, lines int) (*Process, []string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	p := &Process{cmd: exec.Command(self)}
	p.cmd.Env = append(os.Environ(), env+"="+value)
	p.cmd.Stderr = os.Stderr
	// The child lives as long as this pipe is open at our end. The kernel
	// closes it whichever way this process ends.
	p.stdin, err = p.cmd.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := start(p.cmd); err != nil {
		return nil, nil, err
	}
	p.answers = bufio.NewScanner(stdout)
	printed := make([]string, lines)
	for i := range printed {
		if printed[i], err = p.answer(); err != nil {
			return nil, nil, errors.Join(err, p.Close())
		}
	}
	return p, printed, nil
}

// Ask writes an order and returns the answer.
func (p *Process) Ask(order string) (string, error) {
	if _, err := fmt.Fprintln(p.stdin, order); err != nil {
		return "", err
	}
	return p.answer()
}

func (p *Process) answer() (string, error) {
	if !p.answers.Scan() {
		return "", fmt.Errorf("the process has ended: %w", errors.Join(p.answers.Err(), io.ErrUnexpectedEOF))
	}
	return p.answers.Text(), nil
}

// Signal sends the process a signal.
func (p *Process) Signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

// Wait waits until the process ends.
func (p *Process) Wait() error { return p.cmd.Wait() }

// Close ends the process and waits until it is gone.
func (p *Process) Close() error {
	_ = p.stdin.Close()
	stuck := time.AfterFunc(grace, func() { _ = p.cmd.Process.Kill() })
	defer stuck.Stop()
	return p.cmd.Wait()
}

// Serve does nothing in a normal process. In a child that was started with env
// it serves until that returns, and exits. Call it before all else, also from
// the TestMain of a test that starts children.
func Serve(env string, serve func(value string) error) {
	value := os.Getenv(env)
	if value == "" {
		return
	}
	if err := serve(value); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", env, err)
		os.Exit(1)
	}
	os.Exit(0)
}
