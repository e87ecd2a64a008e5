//go:build !unix

package main

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// runs holds the lock in this process: on this system there are no signals, no process groups and no second process.
func (r *runner) runs([]string) error {
	k := newKeeper(&tree{changes: make(chan treeChange, 2)})
	k.runner = r
	return k.keep()
}

func runKeeper(env *environment, _ string) int { return report(env, errors.ErrUnsupported) }

type caller struct{}

func (caller) name() string { return holderName(os.Getpid()) }
func (caller) stop()        {}
func (caller) resume()      {}

type signals struct{ due chan arrival }

func newSignals() *signals {
	s := &signals{make(chan arrival, 1)}
	got := make(chan os.Signal, 1)
	signal.Notify(got, os.Interrupt)
	go func() {
		for range got {
			s.due <- arrival{signal: syscall.SIGINT}
		}
	}()
	return s
}

func (s *signals) areComing() bool   { return len(s.due) > 0 }
func isHarmless(syscall.Signal) bool { return false }
func ignoreStops()                   {}
func hasTerminal() bool              { return false }

// listsProcesses is true, so that no run reports a missing list: this system never has one.
func listsProcesses() bool { return true }

// tree is the program: the processes it has started are not found here.
type tree struct {
	changes chan treeChange
	program *os.Process
}

func (t *tree) start(path string, argv, environ []string) (err error) {
	t.program, err = os.StartProcess(path, argv, &os.ProcAttr{Env: environ, Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}})
	if err != nil {
		return err
	}
	go func() {
		state, err := t.program.Wait()
		ended := treeChange{kind: programEnded, status: exitFailed}
		if err == nil {
			ended.status = state.ExitCode()
		}
		t.changes <- ended
		t.changes <- treeChange{kind: treeGone}
	}()
	return nil
}

// end ends the program by SIGKILL; there is no other way here.
func (t *tree) end(syscall.Signal) []int {
	_ = t.program.Kill()
	return nil
}

func (t *tree) agrees(caller, bool) bool { return false }

// pass leaves ^C to the console, which sends it to the program too.
func (t *tree) pass(syscall.Signal, bool) []int { return nil }

func suspend(*os.Process) error { return errors.ErrUnsupported }
func resume(*os.Process) error  { return errors.ErrUnsupported }
