package main

import (
	"syscall"
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
)

// step is where a run is in its life, as one of its two processes sees it. Each follows those before it.
//
//	waiting    for the lock
//	holding    the program runs under it
//	ending     all that runs has had SIGTERM, and has until killAt
//	killing    SIGKILL, round after round: a process may have forked right before the last
//
// The keeper leaves holding where it ends the tree: the lock is lost or given up, the program has ended and left others, or
// the job has ended. The job leaves it where the keeper has died, or stands still while the lock runs out.
type step uint8

const (
	waiting step = iota
	holding
	ending
	killing
)

// course is the steps of a run. Its methods alone change the step: so SIGTERM comes first, once, and SIGKILL never before
// its time.
type course struct {
	step   step
	killAt clock.Instant
	send   func(syscall.Signal) // to the whole tree
}

// hold begins holding.
func (c *course) hold() { c.step = max(c.step, holding) }

// end begins the end of the tree, or has SIGKILL come sooner.
func (c *course) end(now clock.Instant, grace time.Duration) {
	killAt := now.Add(grace)
	if c.step < ending {
		c.step, c.killAt = ending, killAt
		c.send(syscall.SIGTERM)
	}
	c.killAt = min(c.killAt, killAt)
}

// follow is end by the other process, which has sent SIGTERM, and now sends SIGKILL at an instant. This process does so where
// that one has not.
func (c *course) follow(killAt clock.Instant) {
	if c.step < killing {
		c.step, c.killAt = ending, killAt
	}
}

// look sends SIGKILL where that is due, and returns when to look again.
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

// margin is how much of the lock is left at SIGKILL: it takes a moment.
func (r *runner) margin() time.Duration { return r.killAfter / 8 }

// grace is the time from SIGTERM to SIGKILL: it ends before the lock does. Where nothing is left of the lock, since it was
// deleted or the machine stood still, the program may clean up for -kill-after, as after a kill by hand.
func (r *runner) grace(left time.Duration) time.Duration {
	if left <= r.margin() {
		return r.killAfter
	}
	return min(r.killAfter, left) - r.margin()
}

// question is one that is asked before a lock is taken for lost: of the keeper by the job, and of the nodes by the keeper. Its
// silence counts only while the asker is awake: a process that was stopped, or a machine that was suspended, has not waited.
type question struct {
	isOpen bool // it has no answer
	asked  clock.Instant
	waited time.Duration
	looked clock.Instant
}

// ask begins to wait for an answer.
func (q *question) ask(now clock.Instant) { *q = question{isOpen: true, asked: now, looked: now} }

// silence is for how long an open question has had no answer. It is called at each look.
func (q *question) silence(now clock.Instant) time.Duration {
	q.waited += min(now.Sub(q.looked), lookPause)
	q.looked = now
	return q.waited
}
