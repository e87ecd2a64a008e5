package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redlock-go/redlock"
)

const aboutRun = `
Run holds a lock while a program runs, and keeps it alive. The program is not run by a shell. It stays in the
caller's process group, as under flock: in a pipeline, at a prompt, in the background and after ^Z it behaves as if
it were run alone. Its environment has

  REDLOCK_KEY    the lock, the first of several   REDLOCK_FENCE  the fencing token, 0 without -fenced
  REDLOCK_TOKEN  the token                        REDLOCK_UNTIL  until when the lock is valid if it is not
                                                                 extended, in milliseconds of Unix time

  redlock run -wait 30s backup -- pg_dump -f /backup/all.sql
  redlock run -q nightly -- ./report.sh           silent where another runs it, as flock -n
  redlock run -wait 1h -n 5 build -- make         one of five permits
  redlock run -wait 1m disk:a disk:b -- rsync …   several locks, all or none

A second process (lock-keeper) has the lock. If the lock cannot be kept, the program gets SIGTERM when no more than
-kill-after is left of it, and SIGKILL when nothing is left: it ends before another holder begins. So do all
processes that it has started, in other groups and sessions too. They also end when the program ends and leaves
them in the background (-wait-children waits for them), and when redlock or the second process is killed. A process
of another user that cannot be signalled is reported; the lock is kept until it ends, or is lost. SIGKILL of both
processes at once leaves the program with a SIGTERM.

Signals to redlock are passed on: SIGHUP, SIGINT, SIGQUIT and SIGTERM to the program and its group, others to the
program. ^C reaches the program once. Where SIGHUP or SIGINT is ignored (nohup, & in scripts) it stays ignored. ^Z stops
the program and redlock; the lock is kept, for as long as -stopped allows. Under systemd set KillMode=mixed.

On macOS and the BSDs processes that have left the group and lost their parent are not found, SIGKILL of both processes
leaves the program as it is, and one that was ended by another signal than SIGHUP, SIGINT and SIGTERM gives 128 and the
signal. On Windows the program alone is ended, by force.

Variables that begin with REDLOCK_ are settings, which may hold passwords: the program gets none but the four.

The exit status is that of the program. Where it was ended by a signal redlock ends by the same (128 and the signal
in a shell), as where a signal ends the wait for the lock. 75, or -E: the lock is taken; 69: too few nodes
answer; 70: the lock was lost; 64: wrong arguments; 126: the program cannot be run; 127: there is none.`

// running is the settings of run.
type running struct {
	ttl, killAfter, stopped time.Duration
	wait                    string
	waitChildren, quiet     bool
	permits, statusTaken    int
}

// runner runs a program under a lock.
type runner struct {
	*settings
	running
	names   []string // the locks
	program []string // with its arguments
	path    string   // of the program

	blamed map[int]bool // processes that cannot be signalled, once reported
}

// newRunner reads the settings of run and checks them.
func newRunner(env *environment, args []string) (*runner, error) {
	r := &runner{settings: newSettings(env, "run [settings] name… -- program [argument…]", aboutRun), blamed: map[int]bool{}}
	rest, err := r.parse(args)
	if err != nil {
		return nil, err
	}
	r.running = r.settings.run
	split := slices.Index(rest, "--")
	if split < 1 || split == len(rest)-1 {
		return nil, usage("run wants: name… -- program [argument…]")
	}
	r.names, r.program = rest[:split], rest[split+1:]
	if r.killAfter == 0 {
		r.killAfter = min(r.ttl/2, 5*time.Second)
	}
	switch wait, err := time.ParseDuration(r.wait); {
	case r.killAfter < 0 || r.killAfter > r.ttl/2:
		return nil, usage("-kill-after is %v, at most half the TTL of %v works: a lock that is renewed has two thirds left", r.killAfter, r.ttl)
	case r.wait != "forever" && (err != nil || wait < 0):
		return nil, usage("-wait is %q, want a duration such as 30s, 0 or forever", r.wait)
	case r.permits < 1 || r.permits > 64:
		return nil, usage("-n is %d, want 1 to 64", r.permits)
	case r.permits > 1 && len(r.names) > 1:
		return nil, usage("-n goes with one name, and there are %d", len(r.names))
	case r.statusTaken < 0 || r.statusTaken > 255:
		return nil, usage("-E is %d, want 0 to 255", r.statusTaken)
	}
	return r, r.find()
}

// logger is the log of a run: -q leaves errors.
func (r *runner) logger() *slog.Logger {
	if r.quiet && !r.verbose {
		return slog.New(slog.NewTextHandler(r.settings.env.err, &slog.HandlerOptions{Level: slog.LevelError}))
	}
	return r.settings.logger()
}

// holderName is a process as Inspect shows it: host:pid.
func holderName(pid int) string {
	host, _ := os.Hostname()
	host = strings.Map(func(c rune) rune {
		if c <= ' ' || c > '~' {
			return -1
		}
		return c
	}, host)
	return host[:min(len(host), 100)] + ":" + strconv.Itoa(pid)
}

// find finds the program: one that cannot be run is no reason to take a lock.
func (r *runner) find() error {
	path, err := exec.LookPath(r.program[0])
	switch {
	case errors.Is(err, exec.ErrDot): // PATH says so
	case errors.Is(err, os.ErrPermission), errors.Is(err, syscall.EISDIR):
		return &exit{126, err}
	case err != nil:
		return &exit{127, err}
	}
	r.path = path
	return nil
}

func run(_ context.Context, env *environment, args []string) error {
	r, err := newRunner(env, args)
	if err != nil {
		return err
	}
	return r.runs(args)
}

// acquire takes the lock: -wait, -n and the names say how.
func (r *runner) acquire(ctx context.Context, client *redlock.Client) (redlock.Lock, error) {
	once := false
	if wait, err := time.ParseDuration(r.wait); err == nil { // and not forever
		once = wait == 0
		if !once {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, wait)
			defer cancel()
		}
	}
	switch {
	case r.permits > 1 && once:
		return client.TryAcquireAny(ctx, r.ttl, redlock.Permits(r.names[0], r.permits)...)
	case r.permits > 1:
		return client.AcquireAny(ctx, r.ttl, redlock.Permits(r.names[0], r.permits)...)
	case len(r.names) > 1 && once:
		return client.TryAcquireAll(ctx, r.ttl, r.names...)
	case len(r.names) > 1:
		return client.AcquireAll(ctx, r.ttl, r.names...)
	case once:
		return client.TryAcquire(ctx, r.names[0], r.ttl)
	}
	return client.Acquire(ctx, r.names[0], r.ttl)
}

// refused is the exit of a run that has no lock.
func (r *runner) refused(err error) error {
	if !errors.Is(err, redlock.ErrTaken) {
		return statusOf(err)
	}
	if r.quiet {
		err = nil
	}
	return &exit{r.statusTaken, err}
}

// environ is the environment of the program.
func (r *runner) environ(lock redlock.Lock) []string {
	vars := slices.DeleteFunc(slices.Clone(r.settings.env.environ()), func(v string) bool { return strings.HasPrefix(v, "REDLOCK_") })
	return append(vars,
		"REDLOCK_KEY="+lock.Key(), "REDLOCK_TOKEN="+lock.Token(), "REDLOCK_FENCE="+strconv.FormatUint(lock.Fence(), 10),
		"REDLOCK_UNTIL="+strconv.FormatInt(time.Now().Add(lock.Remaining()).UnixMilli(), 10))
}

// release releases the lock within a moment: its TTL ends it anyway.
func release(lock redlock.Lock) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return lock.Release(ctx)
}

// leave closes a client after its pending releases. A release that a quorum has confirmed was sent to the others: a silent
// node is not waited for.
func leave(client *redlock.Client, isReleased bool) {
	bound := time.Second
	if isReleased {
		bound = 5 * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	_ = client.Shutdown(ctx)
}
