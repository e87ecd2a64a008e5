package main

import (
	"syscall"
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
)

// step is the phase of a run, from the view of one of its two processes. Each step follows the ones before it.
//
//	waiting    for the lock
//	holding    the program runs under it
//	ending     everything that runs has had SIGTERM, and has until killAt
//	killing    SIGKILL, round after round: a process may have forked right before the last
//
// The keeper leaves holding when it ends the tree: the lock is lost or given up, the program has ended and left other
// processes, or the job has ended. The job leaves holding when the keeper has died, or stands still while the lock runs
// out.
type step uint8

const (
	waiting step = iota
	holding
	ending
	killing
)

// course leads a run through its steps. Only its methods change the step, so SIGTERM comes first, once, and SIGKILL
// never before its time.
type course struct {
	step   step
	killAt clock.Instant
	send   func(syscall.Signal) // to the whole tree
}

// hold begins holding.
func (c *course) hold() { c.step = max(c.step, holding) }

// end begins the end of the tree, or brings SIGKILL forward.
func (c *course) end(now clock.Instant, grace time.Duration) {
	killAt := now.Add(grace)
	if c.step < ending {
		c.step, c.killAt = ending, killAt
		c.send(syscall.SIGTERM)
	}
	c.killAt = min(c.killAt, killAt)
}

// follow notes that the other process is ending the tree: it has sent SIGTERM, and sends SIGKILL at an instant. This
// process sends SIGKILL if the other does not.
func (c *course) follow(killAt clock.Instant) {
	if c.step < killing {
		c.step, c.killAt = ending, killAt
	}
}

// look sends SIGKILL when it is due, and returns the time to the next look.
func (c *course) look(now clock.Instant) time.Duration {
	switch {
	case c.step < ending:
		return lookPause
	case now < c.killAt:
		return c.killAt.Sub(now)
	}
	c.step = killing
	c.send(syscall.SIGKILL)
	return killPause
}

// margin is the part of the lock left at SIGKILL, which takes a moment.
func (r *runner) margin() time.Duration { return r.killAfter / 8 }

// grace is the time from SIGTERM to SIGKILL. It ends before the lock does. If nothing is left of the lock, because it
// was deleted or the machine stood still, the program may clean up for -kill-after, as after a kill by hand.
func (r *runner) grace(left time.Duration) time.Duration {
	if left <= r.margin() {
		return r.killAfter
	}
	return min(r.killAfter, left) - r.margin()
}

// question is a question asked before a lock is taken for lost: by the job to the keeper, and by the keeper to the
// nodes. Its silence counts only while the asker is awake: a stopped process, or a suspended machine, has not waited.
type question struct {
	isOpen bool // it has no answer
	asked  clock.Instant
	waited time.Duration
	looked clock.Instant
}

// ask begins to wait for an answer.
func (q *question) ask(now clock.Instant) { *q = question{isOpen: true, asked: now, looked: now} }

// silence returns how long an open question has been without an answer. Call it at each look.
func (q *question) silence(now clock.Instant) time.Duration {
	q.waited += min(now.Sub(q.looked), lookPause)
	q.looked = now
	return q.waited
}
