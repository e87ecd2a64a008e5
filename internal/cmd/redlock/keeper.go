package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/redlock-go/redlock"
)

// keeper holds the lock while the program runs, and ends the program before the lock ends. It is the parent of the
// program. One goroutine decides all that follows, at each event.
type keeper struct {
	*runner
	job      caller // the process that the caller waits for
	link     *link
	jobEnded chan struct{} // closed
	signals  *signals
	tree     *tree

	lock redlock.Lock
	kept context.Context // of the lock
	said time.Time       // until when the job knows the lock to be held

	status    int            // of the program
	signal    syscall.Signal // that has ended it, or the wait for the lock
	ended     bool           // the program itself
	lost      error          // why the lock was lost, or given up
	killAt    time.Time      // since the first SIGTERM: when SIGKILL is due
	stoppedAt time.Time      // since when the program is stopped
	mirrored  bool           // redlock has been stopped as well
}

const (
	// lookPause bounds the pause between two looks at the time left of the lock: the clock of a timer stands still
	// while the machine is suspended.
	lookPause = 100 * time.Millisecond
	// killPause is the pause between two rounds of SIGKILL: a process may have forked right before the last.
	killPause = 20 * time.Millisecond
	// mirrorPause is how long redlock has to stop with its group before it is stopped because the program is.
	mirrorPause = 30 * time.Millisecond
	// stragglers is how much longer than a quorum the other nodes have to connect: a silent one delays no program. A service
	// waits for longer, once.
	stragglers = 2 * time.Millisecond
	// startPause is how long after its start the program may have missed a signal to the group.
	startPause = 50 * time.Millisecond
)

// keep runs the program under the lock.
func (k *keeper) keep() error {
	if k.name == "" {
		k.name = k.job.name()
	}
	k.stragglers = stragglers
	client, err := k.connect(k.logger())
	if err != nil {
		return err
	}
	isReleased := false
	defer func() { leave(client, isReleased) }()
	for k.kept == nil || k.kept.Err() != nil { // the process was stopped between the grant and ignoreStops
		if err := k.wait(client); err != nil {
			return err
		}
		kept, stop := k.lock.KeepAlive(context.Background())
		defer stop()
		k.kept = kept
		ignoreStops()
	}
	k.inform(k.lock.Remaining())
	if err := k.tree.start(k.path, k.program, k.environ(k.lock)); err != nil {
		_ = release(k.lock)
		status := 126
		if errors.Is(err, os.ErrNotExist) { // its interpreter
			status = 127
		}
		return &exit{status, fmt.Errorf("%s: %w", k.path, err)}
	}
	k.supervise()
	if k.lost != nil {
		if k.lock.Remaining() > k.killAfter { // given up by -stopped: the nodes answer
			isReleased = release(k.lock) == nil
		}
		k.signal = 0
		return &exit{exitLost, fmt.Errorf("the lock was lost: %w", k.lost)}
	}
	isReleased = release(k.lock) == nil
	if k.status != 0 {
		return &exit{k.status, nil}
	}
	return nil
}

// wait waits for the lock, or for a signal that would end a process by default.
func (k *keeper) wait(client *redlock.Client) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan error, 1)
	var lock redlock.Lock
	go func() {
		var err error
		lock, err = k.acquire(ctx, client)
		done <- err
	}()
	interrupt := func(s syscall.Signal) error {
		cancel()
		if err := <-done; err == nil {
			_ = release(lock)
		}
		k.signal = s
		return &exit{128 + int(s), nil}
	}
	for {
		select {
		case s := <-k.signals.due:
			if !isHarmless(s.signal) {
				return interrupt(s.signal)
			}
		case <-k.jobEnded:
			return interrupt(syscall.SIGHUP)
		case err := <-done:
			if err == nil && k.signals.areComing() { // it is said within a moment which they are
				done <- nil
				time.Sleep(time.Millisecond)
				continue
			}
			k.lock = lock
			return k.refused(err)
		}
	}
}

// supervise serves events until the last process of the tree has ended.
func (k *keeper) supervise() {
	began := time.Now()
	look := time.NewTimer(0)
	defer look.Stop()
	kept, jobEnded := k.kept.Done(), k.jobEnded
	for {
		select {
		case c := <-k.tree.changes:
			switch c.kind {
			case treeGone:
				k.job.resume()
				return
			case programEnded:
				k.ended, k.status, k.signal, k.stoppedAt = true, c.status, c.signal, time.Time{}
			case programStopped:
				k.stoppedAt, k.mirrored = time.Now(), false
			case programContinued:
				k.stoppedAt = time.Time{}
				if k.tree.agrees(k.job, false) {
					k.job.resume()
				}
			}
		case s := <-k.signals.due:
			k.blame(k.tree.pass(s.signal, s.isOfGroup && s.at.Sub(began) > startPause))
		case <-jobEnded:
			jobEnded = nil
			k.end(k.killAfter)
		case <-kept:
			kept = nil
		case <-look.C:
		}
		look.Reset(k.decide())
	}
}

// decide does what is due, and returns when to look again.
func (k *keeper) decide() time.Duration {
	now, left := time.Now(), k.lock.Remaining()
	pause := lookPause
	switch {
	case k.lost != nil:
	case k.kept.Err() != nil || left <= k.killAfter:
		k.lose(left)
	case k.stopped > 0 && !k.stoppedAt.IsZero() && now.Sub(k.stoppedAt) >= k.stopped:
		k.lost = fmt.Errorf("the program was stopped for longer than the %v of -stopped", k.stopped)
		k.end(k.killAfter)
	case k.ended && !k.waitChildren && k.killAt.IsZero():
		k.end(k.killAfter)
	default:
		k.inform(left)
		pause = min(pause, left-k.killAfter+time.Millisecond)
	}
	if !k.stoppedAt.IsZero() && !k.mirrored {
		k.mirrored = now.Sub(k.stoppedAt) >= mirrorPause
		if k.mirrored && k.killAt.IsZero() {
			k.notice("the program is stopped, and keeps the lock" + k.limit())
		}
		if k.mirrored && hasTerminal() && k.tree.agrees(k.job, true) {
			k.job.stop()
		}
		pause = min(pause, mirrorPause)
	}
	if k.killAt.IsZero() {
		return pause
	}
	isOver := left <= k.margin() && k.lost != nil && !errors.Is(k.lost, redlock.ErrNotHeld)
	if !isOver && now.Before(k.killAt) {
		return min(pause, k.killAt.Sub(now)+time.Millisecond)
	}
	k.blame(k.tree.end(syscall.SIGKILL))
	k.link.report(news{kind: newsEnding, left: time.Second})
	return killPause
}

// margin is how much of the lock is left at SIGKILL: it takes a moment.
func (r *runner) margin() time.Duration { return r.killAfter / 8 }

// lose begins the end of a program whose lock cannot be kept.
func (k *keeper) lose(left time.Duration) {
	k.lost = context.Cause(k.kept)
	if k.lost == nil {
		k.lost = fmt.Errorf("too few nodes have answered, and %v are left: %w", left.Round(time.Millisecond), redlock.ErrNoQuorum)
	}
	grace := min(k.killAfter, left) - k.margin()
	if errors.Is(k.lost, redlock.ErrNotHeld) {
		grace = k.killAfter // it was deleted: the program may clean up, as after a kill by hand
	}
	k.end(grace)
}

// end asks the tree to end within a time.
func (k *keeper) end(grace time.Duration) {
	if at := time.Now().Add(grace); k.killAt.IsZero() || at.Before(k.killAt) {
		k.killAt = at
	}
	k.blame(k.tree.end(syscall.SIGTERM))
	k.link.report(news{kind: newsEnding, left: time.Until(k.killAt)})
}

// inform reports to the job for how long the lock is held, where that is news.
func (k *keeper) inform(left time.Duration) {
	if until := time.Now().Add(left); until.Sub(k.said) > lookPause {
		k.said = until
		k.link.report(news{kind: newsHeld, left: left})
	}
}

// limit is for how long a stopped program keeps the lock, as part of a sentence.
func (k *keeper) limit() string {
	if k.stopped == 0 {
		return ""
	}
	return fmt.Sprintf(" for %v", k.stopped)
}

// notice shows the user what happens.
func (k *keeper) notice(text string) {
	if !k.quiet {
		fmt.Fprintln(k.env.err, "redlock: "+strings.Join(k.names, " ")+": "+text)
	}
}

// blame reports processes that cannot be signalled, each once.
func (r *runner) blame(denied []int) {
	for _, pid := range denied {
		if !r.blamed[pid] {
			r.blamed[pid] = true
			fmt.Fprintf(r.env.err, "redlock: process %d belongs to another user and cannot be signalled; it still runs\n", pid)
		}
	}
}
