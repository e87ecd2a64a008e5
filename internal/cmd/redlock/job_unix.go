//go:build unix

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
)

// job is the process that the caller waits for. It passes on signals. It also ends the tree if the keeper does not,
// because the keeper has died or stands still.
//
// A keeper's silence is the sign for it, never the job's own clock alone: ^Z stops this process, but not the keeper.
// The keeper keeps the lock meanwhile.
type job struct {
	*runner
	course
	clock *clock.System
	tree  *tree // with the keeper as its program
	pipe  io.WriteCloser

	question               // to the keeper
	number   byte          // of the question
	until    clock.Instant // the earliest end of the lock, counted from the question of the keeper's last answer
	isYoung  bool          // that question is older than the lock, which may last much longer
	failed   error         // the reason for the job to end the tree
	over     *news         // the last word of the keeper
}

// askPause is the longest pause between two questions.
const askPause = time.Second

// runs starts the keeper and returns after its end.
func (r *runner) runs(args []string) error {
	j := &job{runner: r, clock: clock.New(), tree: newTree()}
	j.send = func(s syscall.Signal) { j.blame(j.tree.end(s)) }
	defer j.notes.close()
	got := make(chan os.Signal, 64)
	receive(got)
	j.tree.foreign = children(os.Getpid()) // of a script turned into redlock by exec
	adopt()
	heard := make(chan news, 16)
	if err := j.start(heard); err != nil {
		return fmt.Errorf("the second process cannot be started: %w", err)
	}
	defer j.pipe.Close()
	_ = sendArguments(j.pipe, append(args, j.text)) // if this fails the keeper has died, and the code below finds out how
	j.ask(j.clock.Now())                            // answered once the keeper has the lock
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
				coming = nil // tree reports the keeper's end, and it is no news of the lock
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
		for len(coming) > 0 { // known news comes before a judgement
			j.hear(<-coming)
		}
		look.Reset(j.look(j.clock.Now()))
	}
}

// start starts the keeper: this command, under another name for pkill and killall. Files are passed on by number, so
// the caller's files keep their numbers. No other process is started meanwhile.
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
	self, err := executable()
	if err != nil {
		return err
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

// ask asks the keeper until when the lock is held.
func (j *job) ask(now clock.Instant) {
	j.question.ask(now)
	j.number = firstQuestion + (j.number+1)%firstQuestion
	_, _ = j.pipe.Write([]byte{j.number})
}

// executable returns the file of this command, the same one also after an upgrade. Without /proc the command is
// searched for as the caller has searched for it.
func executable() (string, error) {
	const same = "/proc/self/exe"
	if _, err := os.Stat(same); err == nil {
		return same, nil
	}
	path, err := os.Executable()
	if err != nil {
		return exec.LookPath(os.Args[0])
	}
	return path, nil
}

// hear notes the news of the keeper. The time left in an answer is counted from the question. So an answer that has
// waited in the pipe while this process was stopped shows less.
func (j *job) hear(n news) {
	switch {
	case n.kind == newsOver:
		j.over = &n
		return
	case !j.isOpen || n.number != j.number:
		return
	case n.kind == newsHeld:
		j.isYoung = j.step == waiting
		j.hold()
		j.until = j.asked.Add(n.left)
	case j.failed == nil:
		j.follow(j.asked.Add(n.left))
	}
	j.isOpen = false
}

// look asks the keeper, ends the tree if a silent keeper should have done so, and returns the time to the next look.
func (j *job) look(now clock.Instant) time.Duration {
	if j.step == waiting || j.over != nil {
		return lookPause
	}
	left := j.until.Sub(now)
	begin := j.killAfter / 4 * 3 // the keeper begins earlier
	if pause := now.Sub(j.asked); !j.isOpen && (pause >= min(askPause, j.ttl/6) || left <= begin && pause >= killPause) {
		j.ask(now)
	}
	isSilent := j.isOpen && j.silence(now) >= j.patience(left)
	switch {
	case j.failed != nil || !isSilent:
	case j.step == holding && left <= begin:
		j.fail("the second process stands still")
		j.end(now, j.grace(left))
	case j.step == ending && now >= j.killAt: // the keeper has sent SIGTERM, and nothing since
		j.fail("the second process stood still")
	}
	pause := min(lookPause, max(left-begin, killPause))
	if j.failed != nil {
		pause = min(pause, j.course.look(now))
		if j.step == killing && now >= j.killAt.Add(time.Second) { // SIGKILL has ended the tree, and the keeper has not reported it
			j.tree.kill()
		}
	}
	return pause
}

// patience is the time to wait for an answer of the keeper on a busy machine. While something is left of the lock,
// there may be time to end the program in order. If nothing is left, this process itself stood still, as a rule.
func (j *job) patience(left time.Duration) time.Duration {
	switch {
	case j.step > holding:
		return time.Second
	case left > 0 && !j.isYoung:
		return min(j.ttl/8, time.Second)
	}
	return 3 * time.Second
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
	case j.step >= holding:
		j.fail("the second process has died")
		j.clear()
		return &exit{exitLost, j.failed}
	}
	if keeper.signal != 0 {
		dieOf(keeper.signal)
	}
	return &exit{keeper.status, nil}
}

// clear ends the tree left to the job by the keeper.
func (j *job) clear() {
	j.tree.spared = 0
	now := j.clock.Now()
	j.end(now, j.grace(j.until.Sub(now)))
	for len(j.tree.members()) > 0 {
		time.Sleep(min(killPause, j.course.look(j.clock.Now())))
	}
}

// runKeeper runs the keeper. files has the numbers of its ends of the pipes.
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
	k := newKeeper(newTree())
	k.job, k.link = caller(os.Getppid()), newLink(os.NewFile(uintptr(in), "signals"), os.NewFile(uintptr(out), "news"))
	nameKeeper()
	args, err := k.link.arguments()
	if err == nil {
		go k.link.listen(k.signals.jobs, k.jobEnded)
		silent := *env
		silent.err = io.Discard // the job has reported it
		last := len(args) - 1
		silent.file = args[last]
		k.runner, err = newRunner(&silent, args[:last])
	}
	if err == nil {
		k.settings.env, k.notes.out = env, env.err
		err = k.keep()
	}
	status := report(env, err)
	k.link.report(news{kind: newsOver, status: status, signal: k.died})
	return status
}

// hasTerminal reports whether there is a terminal, from which a user can make a stopped job go on. Without one the job
// does not stop: a supervisor ends it by SIGTERM, and a stopped process does not see that.
func hasTerminal() bool {
	fd, err := syscall.Open("/dev/tty", syscall.O_RDWR|syscall.O_NOCTTY|syscall.O_CLOEXEC|syscall.O_NONBLOCK, 0)
	if err == nil {
		_ = syscall.Close(fd)
	}
	return err == nil
}

// caller is the job, from the keeper's view.
type caller int

// name is the job's name as shown with the lock.
func (c caller) name() string { return holderName(int(c)) }

// stop stops the job as ^Z does. The kernel ignores it if no shell could make the job go on.
func (c caller) stop() { _ = syscall.Kill(int(c), syscall.SIGTSTP) }

// resume makes the job go on.
func (c caller) resume() { _ = syscall.Kill(int(c), syscall.SIGCONT) }
