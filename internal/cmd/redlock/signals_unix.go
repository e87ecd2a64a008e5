//go:build unix

package main

import (
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"
)

// passed is the signals that are passed on to the program, with those of morePassed.
var passed = []os.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2,
	syscall.SIGALRM, syscall.SIGCONT, syscall.SIGWINCH,
}

// isHarmless reports whether a process lives on after a signal by default.
func isHarmless(s syscall.Signal) bool { return s == syscall.SIGCONT || s == syscall.SIGWINCH }

// endsJobs reports whether a signal is meant for all processes of a job, as for timeout(1).
func endsJobs(s syscall.Signal) bool {
	return s == syscall.SIGHUP || s == syscall.SIGINT || s == syscall.SIGQUIT || s == syscall.SIGTERM
}

// receive has signals sent to a channel, from now on. SIGHUP and SIGINT stay ignored where they are, and with SIGINT
// SIGQUIT: shells ignore both for a job in the background, and Go keeps no record of the second. SIGPIPE is received and
// dropped: a broken standard error ends nothing. The rare ones come a moment later, as if this process had begun then: each
// costs 30 µs, and they are many.
func receive(got chan<- os.Signal) {
	isIgnored := signal.Ignored(syscall.SIGINT)
	if isIgnored {
		signal.Ignore(syscall.SIGQUIT)
	}
	take := func(signals []os.Signal) {
		for _, s := range signals {
			if !signal.Ignored(s) {
				signal.Notify(got, s)
			}
		}
	}
	take(passed)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	go take(morePassed())
}

// ignoreStops keeps this process from being stopped by a terminal. The program gets what this process began with.
func ignoreStops() {
	dropped := make(chan os.Signal, 1)
	for _, s := range []syscall.Signal{syscall.SIGTSTP, syscall.SIGTTIN} {
		if !wasIgnored(s) {
			signal.Notify(dropped, s) // a signal that is handled has its default again after exec; an ignored one has not
		}
	}
}

// writeAtAnyTime has this process write to a terminal from the background, where stty tostop would stop its group: the
// kernel asks only whether SIGTTOU is ignored.
func writeAtAnyTime() {
	if !wasIgnored(syscall.SIGTTOU) {
		signal.Ignore(syscall.SIGTTOU)
	}
}

// writeInTurn undoes writeAtAnyTime, for the moment in which the program is started.
func writeInTurn() {
	if !wasIgnored(syscall.SIGTTOU) {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGTTOU)
	}
}

// signals decides how a signal reached redlock. The job and the keeper are in one group: what both have got was sent to
// the group, and the program has had it too. What only one of them has got was sent to redlock alone.
type signals struct {
	own  chan os.Signal      // what the keeper has got
	jobs chan syscall.Signal // what the job has got
	due  chan arrival

	coming atomic.Int32 // those not decided, or not taken from due
}

// pairPause is how long the second of two signals to a group may take. On a machine with sixteen such jobs at once 30 ms
// were too few: a ^C came three times.
const pairPause = 100 * time.Millisecond

func newSignals() *signals {
	s := &signals{own: make(chan os.Signal, 64), jobs: make(chan syscall.Signal, 64), due: make(chan arrival, 64)}
	receive(s.own)
	go s.pair()
	return s
}

// areComing reports whether signals have arrived that were not taken from due.
func (s *signals) areComing() bool {
	return s.coming.Load() > 0 || len(s.own) > 0 || len(s.jobs) > 0 || len(s.due) > 0
}

// pair waits for the second of each two signals. It runs as long as the process.
func (s *signals) pair() {
	type half struct {
		arrival
		isOwn bool
	}
	waiting := map[syscall.Signal]half{}
	paired := map[syscall.Signal]time.Time{}
	tick := time.NewTicker(pairPause / 3)
	tick.Stop()
	for {
		var h half
		select {
		case got := <-s.own:
			h = half{arrival{signal: got.(syscall.Signal)}, true}
		case got := <-s.jobs:
			h = half{arrival{signal: got}, false}
		case <-tick.C:
			for number, first := range waiting {
				if time.Since(first.at) >= pairPause {
					s.due <- first.arrival
					delete(waiting, number)
				}
			}
			s.settle(len(waiting), tick)
			continue
		}
		h.at = time.Now()
		first, isSecond := waiting[h.signal]
		switch {
		case h.at.Sub(paired[h.signal]) < pairPause: // timeout(1) sends to its child, and then to the group
		case !isSecond:
			waiting[h.signal] = h
		case first.isOwn != h.isOwn:
			first.isOfGroup, paired[h.signal] = true, h.at
			s.due <- first.arrival
			delete(waiting, h.signal)
		}
		s.settle(len(waiting), tick)
	}
}

// settle runs the ticker while signals wait for their second.
func (s *signals) settle(waiting int, tick *time.Ticker) {
	s.coming.Store(int32(waiting))
	if waiting > 0 {
		tick.Reset(pairPause / 3)
	} else {
		tick.Stop()
	}
}
