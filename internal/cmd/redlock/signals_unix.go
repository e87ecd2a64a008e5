//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
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
