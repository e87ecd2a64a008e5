// Command redlock serves locks on a majority of Redis or Valkey masters to clients of any language,
// and is the operator's tool for them. "redlock help" lists its commands.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/redlock-go/redlock/internal/base/build"
)

// Exit statuses, after sysexits.h where it has one.
const (
	exitOK       = 0
	exitFailed   = 1
	exitUsage    = 64 // wrong arguments or settings
	exitNoQuorum = 69 // too few nodes answer
	exitLost     = 70 // the lock was lost while the program ran
	exitTaken    = 75 // another holder has the lock
)

// statuses explains the exit statuses for the manual.
var statuses = []struct {
	number  int
	meaning string
}{
	{exitOK, "Done."},
	{exitFailed, "It failed; standard error has the reason."},
	{exitUsage, "Wrong arguments or settings."},
	{exitNoQuorum, "Too few nodes answer, or of serve: an address is in use."},
	{exitLost, "The lock was lost while the program ran."},
	{exitTaken, "Another holder has the lock."},
}

// subcommand is one of the commands of redlock.
type subcommand struct {
	name, arguments, summary string
	run                      func(ctx context.Context, env *environment, args []string) error
}

var subcommands []subcommand

func init() {
	subcommands = []subcommand{
		{"serve", "", "serve locks to Redis clients of any language", serve},
		{"run", "name -- program…", "run a program while a lock is held", run},
		{"inspect", "key", "show which node has what at a key", inspect},
		{"held", "[key…]", "report which keys are held, for scripts", held},
		{"nodes", "", "show the state of the nodes", nodes},
		{"break", "key", "release the lock of another, after a question", breakLock},
		{"fence", "status|init", "show the nodes' part in fencing, or begin it", fence},
		{"demo", "", "show locks at work in ten seconds", demo},
		{"completion", "bash|zsh|fish", "print completions for a shell", completion},
		{"man", "", "print the page of the manual", man},
		{"version", "", "print the version", version},
		{"help", "[command]", "show this, or what a command does", help},
	}
}

// verbKeep is the command of the second process of run, and keeperName the first argument of that process.
const (
	verbKeep   = "keep"
	keeperName = "lock-keeper"
)

func version(_ context.Context, env *environment, args []string) error {
	s := newSettings(env, "version", "Version prints the version of redlock, the commit and its day, the version of Go, and the system that it was built for.\n\n  redlock version")
	if rest, err := s.parse(args); err != nil || len(rest) > 0 {
		return cmp.Or(err, usage("version takes no argument"))
	}
	fmt.Fprintf(env.out, "redlock %v %s %s/%s\n", build.Read(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return nil
}

// environment is the process's view of the system; tests give it another.
type environment struct {
	in       io.Reader
	out, err io.Writer
	environ  func() []string
	help     func(s *settings, about string) // shows the help of a command in place of out; or nil
	file     string                          // of -config, if another process has read it: a pipe is read once
}

// line reads a line of the input. The text after it stays for the next question.
func (e *environment) line() (text string, err error) {
	for one := []byte{0}; ; text += string(one) {
		if _, err = io.ReadFull(e.in, one); err != nil || one[0] == '\n' {
			return text, err
		}
	}
}

// exit is an error with an exit status.
type exit struct {
	status int
	err    error // nil: nothing to report
}

func (e *exit) Error() string { return fmt.Sprint(e.err) }
func (e *exit) Unwrap() error { return e.err }

// usage returns the error of wrong arguments.
func usage(format string, args ...any) error {
	return &exit{exitUsage, fmt.Errorf(format, args...)}
}

func main() {
	os.Exit(Main(context.Background(), &environment{in: os.Stdin, out: os.Stdout, err: os.Stderr, environ: os.Environ}, os.Args[1:]))
}

// Main runs the command with arguments and returns its exit status. A command that leaves something behind takes its
// own signals. All others are ended by them, even at a question, which also ends a loop of the shell.
func Main(ctx context.Context, env *environment, args []string) int {
	if len(args) == 0 {
		args = []string{"help"}
	}
	if args[0] == verbKeep && len(args) == 2 {
		return runKeeper(env, args[1])
	}
	err := error(usage("there is no command %q; redlock help lists them", args[0]))
	for _, sub := range subcommands {
		if sub.name == args[0] || sub.name == "help" && (args[0] == "-h" || args[0] == "--help") {
			err = sub.run(ctx, env, args[1:])
			break
		}
	}
	return report(env, err)
}

// report shows an error and returns the exit status for it.
func report(env *environment, err error) int {
	if err == nil || errors.Is(err, errHelp) {
		return exitOK
	}
	status := exitFailed
	if e := (*exit)(nil); errors.As(err, &e) {
		status = e.status
		if e.err == nil {
			return status
		}
	}
	fmt.Fprintln(env.err, "redlock:", inFlags(trimName(err)))
	return status
}

func help(ctx context.Context, env *environment, args []string) error {
	if len(args) > 0 && args[0] != "help" && args[0] != "-h" {
		for _, sub := range subcommands {
			if sub.name == args[0] {
				return sub.run(ctx, env, []string{"-h"})
			}
		}
		return usage("there is no command %q; redlock help lists them", args[0])
	}
	fmt.Fprint(env.out, "redlock holds locks on a majority of independent Redis or Valkey masters.\n\n")
	for _, sub := range subcommands {
		fmt.Fprintf(env.out, "  redlock %-32s %s\n", sub.name+" "+sub.arguments, sub.summary)
	}
	fmt.Fprint(env.out, "\n"+aboutAll)
	return nil
}

const aboutAll = `redlock <command> -h shows the settings of a command. Each can also be given as a variable
(-max-ttl as REDLOCK_MAX_TTL) or in a file of "name value" lines (-config, REDLOCK_CONFIG), which may have
the settings of all commands. An unknown name is an error, with its line.
Give passwords there and not in arguments, which all users of a machine can list.
`
