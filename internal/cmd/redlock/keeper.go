package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/base/clock"
)

// keeper holds the lock while the program runs, and ends the program before the lock ends. It is the parent of the
// program. One goroutine takes all decisions, one at each event.
type keeper struct {
	*runner
	course
	clock    *clock.System
	job      caller // the process that the caller waits for
	link     *link
	jobEnded chan struct{} // closed
	signals  *signals
	tree     *tree

	lock      redlock.Lock
	granted   clock.Instant
	extend    func(ctx context.Context) error // the lock
	kept      context.Context                 // of the lock
	nodes     question                        // whether they still have it
	answers   chan error                      // from the nodes
	refusedAt clock.Instant                   // when the nodes last refused it, or 0
	refusal   error                           // the reason then
	mix       chan string                     // the warning about a mixed use of a name, or ""; nil: already shown

	state  state
	since  clock.Instant  // when the state began
	status int            // of the program
	died   syscall.Signal // the signal that ended the program, or the wait for the lock
	lost   error          // why the lock was lost or given up
}

// state is the state of the program.
type state uint8

const (
	atWork   state = iota
	halted         // by ^Z or another signal
	mirrored       // redlock has been stopped as well
	hasEnded
)

// newKeeper returns the keeper of a program.
func newKeeper(t *tree) *keeper {
	k := &keeper{clock: clock.New(), jobEnded: make(chan struct{}), signals: newSignals(), tree: t, answers: make(chan error, 1), mix: make(chan string, 1)}
	k.send = func(s syscall.Signal) { k.blame(t.end(s)) }
	return k
}

const (
	// lookPause bounds the pause between two looks at the time left of the lock: a timer's clock stands still while the
	// machine is suspended.
	lookPause = 100 * time.Millisecond
	// killPause is the pause between two rounds of SIGKILL: a process may have forked right before the last one.
	killPause = 20 * time.Millisecond
	// mirrorPause is the time for redlock to stop with its group, before the keeper stops it to follow the program.
	mirrorPause = 30 * time.Millisecond
	// stragglers is the extra time for nodes outside the first quorum to connect: a silent node delays no program. A
	// service waits longer, once.
	stragglers = 2 * time.Millisecond
	// startPause is the time after its start in which the program may have missed a signal to the group.
	startPause = 50 * time.Millisecond
)

// keep runs the program under the lock.
func (k *keeper) keep() error {
	k.name = among(cmp.Or(k.name, k.job.name()), k.permits)
	k.stragglers = stragglers
	defer k.notes.close()
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
		k.lasts()
		kept, stop := k.lock.KeepAlive(context.Background())
		defer stop()
		k.kept, k.granted = kept, k.clock.Now()
		ignoreStops()
	}
	k.hold()
	if !listsProcesses() {
		k.notice("there is no /proc: of what runs the program alone can be ended")
	}
	k.extend = func(ctx context.Context) error {
		err := k.lock.Extend(ctx, k.ttl)
		if err != nil {
			hurry, cancel := context.WithTimeout(ctx, time.Millisecond)
			defer cancel()
			_ = client.Ready(hurry) // nodes that are down are dialed four times a second
		}
		return err
	}
	if k.link != nil { // the job learns of the lock before there is a program
		select {
		case number := <-k.link.asked:
			k.answer(number)
		case <-k.jobEnded:
		}
	}
	mix := k.mix
	go func() { // during the start of the program
		ctx, cancel := context.WithTimeout(context.Background(), max(time.Second, k.nodeTimeout))
		defer cancel()
		mix <- k.mixed(ctx, client)
	}()
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
		if k.lock.Remaining() > k.killAfter { // given up because of -stopped: the nodes answer
			isReleased = release(k.lock) == nil
		}
		k.died = 0
		return &exit{exitLost, fmt.Errorf("the lock was lost: %w", k.lost)}
	}
	isReleased = k.clock.Now().Sub(k.granted) < k.atLeast || release(k.lock) == nil // or it ends by itself
	if k.status != 0 {
		return &exit{k.status, nil}
	}
	return nil
}

// lasts makes the lock last for -at-least in any case, and then for -ttl at a time. An extension shortens no lock.
func (k *keeper) lasts() {
	if k.atLeast == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if k.lock.Remaining() < k.atLeast { // it was granted late
		_ = k.lock.Extend(ctx, k.term())
	}
	_ = k.lock.Extend(ctx, k.ttl)
}

// wait waits for the lock, or for a signal whose default is to end a process.
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
		k.died = s
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
			if err == nil && k.signals.areComing() { // the next moment shows which ones
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
	kept, jobEnded, questions := k.kept.Done(), k.jobEnded, k.link.questions()
	for {
		asked := byte(0)
		select {
		case c := <-k.tree.changes:
			if c.kind == treeGone {
				k.job.resume()
				if k.mix != nil { // the program has ended at once
					select {
					case text := <-k.mix:
						k.warn(text)
					case <-time.After(killPause):
					}
				}
				return
			}
			k.note(c)
		case s := <-k.signals.due:
			k.blame(k.tree.pass(s.signal, s.isOfGroup && s.at.Sub(began) > startPause))
		case <-jobEnded:
			jobEnded = nil
			k.end(k.clock.Now(), k.killAfter)
		case asked = <-questions:
		case text := <-k.mix:
			k.warn(text)
		case <-kept:
			kept = nil
		case <-look.C:
		}
		look.Reset(k.decide(k.clock.Now(), k.lock.Remaining()))
		if asked != 0 {
			k.answer(asked)
		}
	}
}

// warn shows the warning about a mixed use of a name, also with -q.
func (k *keeper) warn(text string) {
	k.mix = nil
	if text != "" {
		k.notes.say(text)
	}
}

// note notes a change of the program.
func (k *keeper) note(c treeChange) {
	k.since = k.clock.Now()
	switch c.kind {
	case programEnded:
		k.state, k.status, k.died = hasEnded, c.status, c.signal
	case programStopped:
		k.state = halted
	case programContinued:
		k.state = atWork
		if k.tree.agrees(k.job, false) {
			k.job.resume()
		}
	}
}

// decide acts on the time left of the lock, and returns the time to the next look.
func (k *keeper) decide(now clock.Instant, left time.Duration) time.Duration {
	pause, inState := lookPause, now.Sub(k.since)
	isStopped := k.state == halted || k.state == mirrored
	switch {
	case k.lost != nil:
	case k.kept.Err() != nil:
		k.lose(now, left, context.Cause(k.kept))
	case left <= k.killAfter+k.patience():
		pause = killPause
		if k.isRefused(now, left) {
			k.lose(now, left, k.refusal)
		}
	case k.stopped > 0 && isStopped && inState >= k.stopped:
		k.lost = fmt.Errorf("the program was stopped for longer than the %v of -stopped", k.stopped)
		k.end(now, k.killAfter)
	default:
		pause = min(pause, left-k.killAfter-k.patience()+time.Millisecond)
	}
	if k.state == hasEnded && !k.waitChildren && k.step < ending {
		k.end(now, k.killAfter)
	}
	if k.state == halted {
		pause = min(pause, mirrorPause)
		if inState >= mirrorPause {
			k.mirror()
		}
	}
	return min(pause, k.look(now))
}

// mirror stops redlock with its program.
func (k *keeper) mirror() {
	k.state = mirrored
	if k.step < ending {
		k.notice("the program is stopped, and keeps the lock" + k.limit())
	}
	if hasTerminal() && k.tree.agrees(k.job, true) {
		k.job.stop()
	}
}

// patience is how long the nodes may leave a question open before the lock is given up, besides -kill-after.
func (k *keeper) patience() time.Duration { return min(k.killAfter/4, 500*time.Millisecond) }

// isRefused asks the nodes for the lock when little is left of it, and reports whether they have not given it. The last
// try of a renewal may be a second old. Since then an outage may have ended, or this process itself may have stood
// still.
func (k *keeper) isRefused(now clock.Instant, left time.Duration) bool {
	if !k.nodes.isOpen {
		k.nodes.ask(now)
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), k.killAfter)
			defer cancel()
			k.answers <- k.extend(ctx)
		}()
	}
	isSilent := k.nodes.silence(now) >= k.patience()
	select {
	case err := <-k.answers:
		k.nodes.isOpen, k.refusedAt, k.refusal = false, now, err
		if err == nil {
			k.refusedAt = 0
			return false
		}
	default:
		if isSilent {
			k.refusedAt, k.refusal = now, redlock.ErrNoQuorum
		}
	}
	return left <= k.killAfter && k.refusedAt != 0 && now.Sub(k.refusedAt) <= k.patience()
}

// lose begins the end of a program whose lock cannot be kept.
func (k *keeper) lose(now clock.Instant, left time.Duration, why error) {
	k.lost = why
	if errors.Is(why, redlock.ErrNotHeld) {
		left = 0
	}
	if left > 0 {
		k.lost = fmt.Errorf("%v are left of it: %w", left.Round(time.Millisecond), why)
	}
	k.end(now, k.grace(left))
}

// answer answers a question of the job.
func (k *keeper) answer(number byte) {
	n := news{kind: newsHeld, number: number, left: k.lock.Remaining()}
	switch k.step {
	case ending:
		n.kind, n.left = newsEnding, k.killAt.Sub(k.clock.Now())
	case killing:
		n.kind, n.left = newsEnding, time.Second
	}
	k.link.report(n)
}

// limit says how long a stopped program keeps the lock, as part of a sentence.
func (k *keeper) limit() string {
	if k.stopped == 0 {
		return ""
	}
	return fmt.Sprintf(" for %v", k.stopped)
}

// notice shows an event to the user.
func (k *keeper) notice(text string) {
	if !k.quiet {
		k.notes.say(strings.Join(k.names, " ") + ": " + text)
	}
}

// blame reports each process that cannot be signalled, once.
func (r *runner) blame(denied []int) {
	for _, pid := range denied {
		if !r.blamed[pid] {
			r.blamed[pid] = true
			r.notes.say(fmt.Sprintf("process %d belongs to another user and cannot be signalled; it still runs", pid))
		}
	}
}
