//go:build unix

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
)

// job is the process that the caller waits for. It passes on signals, and ends the tree where the keeper does not: it
// has died, or stands still.
type job struct {
	*runner
	clock *clock.System
	tree  *tree // the keeper is its program
	pipe  *os.File

	isHeld   bool          // the keeper has the lock
	isEnding bool          // it is ending the tree
	until    clock.Instant // of the lock, or until when the tree is to have ended; 0 is not known
	failed   error         // why the job ends the tree
	over     *news         // the last word of the keeper
}

// runs starts the keeper and returns after its end.
func (r *runner) runs(args []string) error {
	j := &job{runner: r, clock: clock.New(), tree: newTree()}
	got := make(chan os.Signal, 64)
	receive(got)
	j.tree.foreign = children(os.Getpid()) // of a script that became redlock by exec
	adopt()
	heard := make(chan news, 16)
	if err := j.start(heard); err != nil {
		return fmt.Errorf("the second process cannot be started: %w", err)
	}
	defer j.pipe.Close()
	_ = sendArguments(j.pipe, append(args, j.text)) // it has died if this fails, and what follows finds how
	look := time.NewTimer(lookPause)
	defer look.Stop()
	coming := heard // nil once the keeper's end is closed
	for {
		select {
		case s := <-got:
			_, _ = j.pipe.Write([]byte{byte(s.(syscall.Signal))})
		case n, isOpen := <-coming:
			if isOpen {
				j.hear(n)
			} else {
				coming = nil // that it has ended says tree, and is no news of the lock
			}
		case c := <-j.tree.changes:
			if c.kind == programEnded {
				for n := range heard {
					j.hear(n)
				}
				return j.finish(c)
			}
		case <-look.C:
		}
		look.Reset(j.look())
	}
}

// start starts the keeper: this command, whose name is another for pkill and killall. Files are passed on by their numbers, so
// that those of the caller keep theirs. No other process is started meanwhile.
func (j *job) start(heard chan<- news) error {
	var down, up [2]int
	if err := errors.Join(syscall.Pipe(down[:]), syscall.Pipe(up[:])); err != nil {
		return err
	}
	defer syscall.Close(down[0])
	defer syscall.Close(up[1])
	syscall.CloseOnExec(down[1])
	syscall.CloseOnExec(up[0])
	j.pipe = os.NewFile(uintptr(down[1]), "signals")
	go readNews(os.NewFile(uintptr(up[0]), "news"), heard)
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if _, err := os.Stat("/proc/self/exe"); err == nil {
		self = "/proc/self/exe" // the same file also after an upgrade
	}
	argv := []string{keeperName, verbKeep, fmt.Sprintf("%d,%d", down[0], up[1])}
	pid, err := syscall.ForkExec(self, argv, &syscall.ProcAttr{Env: j.env.environ(), Files: []uintptr{0, 1, 2}})
	if err != nil {
		return err
	}
	j.tree.program, j.tree.spared = pid, pid
	go j.tree.reap()
	return nil
}

// hear notes the news of the keeper.
func (j *job) hear(n news) {
	switch n.kind {
	case newsOver:
		j.over = &n
	default:
		j.isHeld, j.isEnding = true, n.kind == newsEnding
		j.until = j.clock.Now().Add(n.left)
	}
}

// look ends the tree where the keeper should have done so, and returns when to look again.
func (j *job) look() time.Duration {
	if !j.isHeld || j.over != nil {
		return lookPause
	}
	begin := j.killAfter / 4 * 3 // the keeper begins before
	left := j.until.Sub(j.clock.Now())
	switch {
	case left <= -time.Second: // SIGKILL has ended the tree, and the keeper has not said so
		j.fail("the second process stood still")
		j.tree.kill()
	case left <= j.margin():
		j.blame(j.tree.end(syscall.SIGKILL))
		return killPause
	case j.isEnding, j.failed != nil:
		return min(left-j.margin(), lookPause)
	case left <= begin:
		j.fail("the second process stands still")
		j.blame(j.tree.end(syscall.SIGTERM))
	default:
		return min(left-begin, lookPause)
	}
	return killPause
}

func (j *job) fail(why string) {
	if j.failed == nil {
		j.failed = errors.New("the lock was lost: " + why)
	}
}

// finish returns the result of the run after the end of the keeper.
func (j *job) finish(keeper treeChange) error {
	switch {
	case j.over != nil && j.failed == nil:
		keeper.status, keeper.signal = j.over.status, j.over.signal
	case j.isHeld:
		j.fail("the second process has died")
		j.clear()
		return &exit{exitLost, j.failed}
	}
	if keeper.signal != 0 {
		dieOf(keeper.signal)
	}
	return &exit{keeper.status, nil}
}

// clear ends the tree, which the keeper has left to the job.
func (j *job) clear() {
	j.tree.spared = 0
	grace := min(j.killAfter, j.until.Sub(j.clock.Now())-j.margin())
	killAt := j.clock.Now().Add(grace)
	j.blame(j.tree.end(syscall.SIGTERM))
	for len(j.tree.members()) > 0 {
		time.Sleep(killPause)
		if j.clock.Now() >= killAt {
			j.blame(j.tree.end(syscall.SIGKILL))
		}
	}
}

// runKeeper is the keeper. files are the numbers of its ends of the pipes.
func runKeeper(env *environment, files string) int {
	first, second, _ := strings.Cut(files, ",")
	in, err1 := strconv.Atoi(first)
	out, err2 := strconv.Atoi(second)
	if errors.Join(err1, err2) != nil {
		return report(env, usage("keep is a part of redlock run"))
	}
	syscall.CloseOnExec(in)
	syscall.CloseOnExec(out)
	writeAtAnyTime()
	k := &keeper{
		job: caller(os.Getppid()), link: newLink(os.NewFile(uintptr(in), "signals"), os.NewFile(uintptr(out), "news")),
		jobEnded: make(chan struct{}), signals: newSignals(), tree: newTree(),
	}
	nameKeeper()
	args, err := k.link.arguments()
	if err == nil {
		go k.link.listen(k.signals.jobs, k.jobEnded)
		silent := *env
		silent.err = io.Discard // the job has said it
		last := len(args) - 1
		silent.file = args[last]
		k.runner, err = newRunner(&silent, args[:last])
	}
	if err == nil {
		k.settings.env = env
		err = k.keep()
	}
	status := report(env, err)
	k.link.report(news{kind: newsOver, status: status, signal: k.signal})
	return status
}

// hasTerminal reports whether there is a terminal at which a user can have a stopped job go on. Elsewhere the job does not
// stop: a supervisor ends it by SIGTERM, which a stopped process does not see.
func hasTerminal() bool {
	fd, err := syscall.Open("/dev/tty", syscall.O_RDWR|syscall.O_NOCTTY|syscall.O_CLOEXEC|syscall.O_NONBLOCK, 0)
	if err == nil {
		_ = syscall.Close(fd)
	}
	return err == nil
}

// caller is the job as the keeper sees it.
type caller int

// name is how the lock shows it.
func (c caller) name() string { return holderName(int(c)) }

// stop stops the job as ^Z does: the kernel ignores it where no shell could have it go on.
func (c caller) stop() { _ = syscall.Kill(int(c), syscall.SIGTSTP) }

// resume has the job go on.
func (c caller) resume() { _ = syscall.Kill(int(c), syscall.SIGCONT) }
