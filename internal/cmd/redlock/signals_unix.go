//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// passed lists the signals passed on to the program, besides those of morePassed.
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

// receive sends signals to a channel from now on. SIGHUP and SIGINT stay ignored if they are, and SIGQUIT is ignored if
// SIGINT is: shells ignore both for a job in the background, and Go keeps no record of SIGQUIT. SIGPIPE is received and
// dropped, so a broken standard error ends nothing. The rare signals are received a moment later, as if this process
// had begun then. They are many, and each costs 30 µs.
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

// ignoreStops keeps a terminal from stopping this process. The program gets the dispositions this process began with.
func ignoreStops() {
	dropped := make(chan os.Signal, 1)
	for _, s := range []syscall.Signal{syscall.SIGTSTP, syscall.SIGTTIN} {
		if !wasIgnored(s) {
			signal.Notify(dropped, s) // a handled signal has its default again after exec; an ignored one has not
		}
	}
}

// writeAtAnyTime lets this process write to a terminal from the background, where stty tostop would stop its group. The
// kernel asks only whether SIGTTOU is ignored.
func writeAtAnyTime() {
	if !wasIgnored(syscall.SIGTTOU) {
		signal.Ignore(syscall.SIGTTOU)
	}
}

// writeInTurn undoes writeAtAnyTime for the moment of the program's start.
func writeInTurn() {
	if !wasIgnored(syscall.SIGTTOU) {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGTTOU)
	}
}
