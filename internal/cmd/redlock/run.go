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
  redlock run -shared -wait 1m data -- ./read.sh  beside others with -shared, as flock -s
  redlock run -q -E 0 -at-least 50s tick -- ./tick.sh  from cron on several machines: once a minute
  redlock run -wait 1m disk:a disk:b -- rsync …   several locks, all or none

A second process (lock-keeper) has the lock. If the lock cannot be kept, the program gets SIGTERM when no more than
-kill-after is left of it, and SIGKILL when nothing is left: it ends before another holder begins. Where nothing is
left already, since the lock was deleted or the machine stood still, SIGKILL comes -kill-after later. So do all
processes end that it has started, in other groups and sessions too. They also end when the program ends and leaves
them in the background (-wait-children waits for them), and when redlock or the second process is killed. A process
of another user that cannot be signalled is reported; the lock is kept until it ends, or is lost. SIGKILL of both
processes at once leaves the program with a SIGTERM.

Signals to redlock are passed on: SIGHUP, SIGINT, SIGQUIT and SIGTERM to the program and its group, others to the
program. ^C reaches the program once. Where SIGHUP or SIGINT is ignored (nohup, & in scripts) it stays ignored. ^Z stops
the program and redlock; the lock is kept, for as long as -stopped allows. Under systemd set KillMode=mixed.

A lock is renewed at each third of its TTL, and asked for once more before it is given up. With the defaults (-ttl 10s,
-kill-after 2.5s) an outage of the masters of 4s ends no program, whenever it begins. Of a longer one two thirds of the TTL
less -kill-after are bridged at least.

On macOS and the BSDs processes that have left the group and lost their parent are not found, SIGKILL of both processes
leaves the program as it is, and one that was ended by another signal than SIGHUP, SIGINT and SIGTERM gives 128 and the
signal. On Windows the program alone is ended, by force.

Settings in variables (REDLOCK_NODES) go on to the program, which may run redlock as well. A list of nodes with a password
does not: for programs that run redlock, give it in a file (REDLOCK_CONFIG).

A short job runs twice if two machines' clocks differ by more than it takes. -at-least keeps the lock for a time after its
grant, also where the job is done or has failed before, or all is killed. The status is that of the job, at once. With
-shared any number hold the lock at once, beside none without -shared, as with flock -s.

Without /proc the program alone is ended with the lock, and what it has left in the background is waited for.

The exit status is that of the program. Where it was ended by a signal redlock ends by the same (128 and the signal
in a shell), as where a signal ends the wait for the lock. 75, or -E: the lock is taken; 69: too few nodes
answer; 70: the lock was lost; 64: wrong arguments; 126: the program cannot be run; 127: there is none.`

// running holds the settings of run.
type running struct {
	ttl, killAfter, stopped time.Duration
	wait                    string
	atLeast                 time.Duration
	waitChildren, quiet     bool
	shared                  bool
	permits, statusTaken    int
}

// runner runs a program under a lock.
type runner struct {
	*settings
	running
	names   []string // the locks
	program []string // with its arguments
	path    string   // of the program

	notes  *notes
	blamed map[int]bool // processes that cannot be signalled, once reported
}

// newRunner reads the settings of run and checks them.
func newRunner(env *environment, args []string) (*runner, error) {
	r := &runner{settings: newSettings(env, "run [settings] name… -- program [argument…]", aboutRun), notes: &notes{out: env.err}, blamed: map[int]bool{}}
	rest, err := r.parse(args)
	if err != nil {
		return nil, err
	}
	if err := r.check(rest); err != nil {
		return nil, r.placed(err)
	}
	return r, r.find()
}

// check checks the settings and the arguments of run.
func (r *runner) check(rest []string) error {
	r.running = r.settings.run
	split := slices.Index(rest, "--")
	if split < 1 || split == len(rest)-1 {
		return usage("run wants: name… -- program [argument…]")
	}
	r.names, r.program = rest[:split], rest[split+1:]
	if r.killAfter == 0 {
		r.killAfter = min(r.ttl/4, 5*time.Second)
	}
	switch wait, err := time.ParseDuration(r.wait); {
	case r.killAfter < 0 || r.killAfter > r.ttl/2:
		return usage("-kill-after is %v, at most half the TTL of %v works: a lock that is renewed has two thirds left", r.killAfter, r.ttl)
	case r.wait != "forever" && (err != nil || wait < 0):
		return usage("-wait is %q, want a duration such as 30s, 0 or forever", r.wait)
	case r.permits < 1 || r.permits > 64:
		return usage("-n is %d, want 1 to 64", r.permits)
	case r.permits > 1 && len(r.names) > 1:
		return usage("-n goes with one name, and there are %d", len(r.names))
	case r.shared && (r.permits > 1 || len(r.names) > 1):
		return usage("-shared goes with one name, and without -n")
	case r.maxTTL > 0 && r.atLeast > r.maxTTL:
		return usage("-at-least is %v, at most the %v of -max-ttl work", r.atLeast, r.maxTTL)
	case r.maxTTL > 0 && r.ttl > r.maxTTL:
		return usage("-ttl is %v, at most the %v of -max-ttl work", r.ttl, r.maxTTL)
	case r.statusTaken < 0 || r.statusTaken > 255:
		return usage("-E is %d, want 0 to 255", r.statusTaken)
	}
	return nil
}

// term is the TTL to ask for: it must keep the lock for -at-least after the grant, and the nodes need time to grant it.
func (r *runner) term() time.Duration {
	if r.atLeast == 0 {
		return r.ttl
	}
	term := r.atLeast + r.atLeast/50 + max(time.Second, r.nodeTimeout)
	if r.maxTTL > 0 {
		term = min(term, r.maxTTL)
	}
	return max(r.ttl, term)
}

// logger returns the log of a run: with -q only errors.
func (r *runner) logger() *slog.Logger {
	if r.quiet && !r.verbose {
		return slog.New(slog.NewTextHandler(r.settings.env.err, &slog.HandlerOptions{Level: slog.LevelError}))
	}
	return r.settings.logger()
}

// holderName is the name of a process in Inspect: host:pid.
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

// find finds the program. A program that cannot be run is no reason to take a lock.
func (r *runner) find() error {
	path, err := exec.LookPath(r.program[0])
	if _, isSet := os.LookupEnv("PATH"); !isSet && !strings.Contains(r.program[0], "/") {
		path, err = exec.LookPath("/bin/" + r.program[0]) // where execvp looks
		if err != nil {
			path, err = exec.LookPath("/usr/bin/" + r.program[0])
		}
	}
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
	if wait, err := time.ParseDuration(r.wait); err == nil { // else it is "forever"
		once = wait == 0
		if !once {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, wait)
			defer cancel()
		}
	}
	ttl := r.term()
	switch {
	case r.permits > 1 && once:
		return client.TryAcquireAny(ctx, ttl, redlock.Permits(r.names[0], r.permits)...)
	case r.permits > 1:
		return client.AcquireAny(ctx, ttl, redlock.Permits(r.names[0], r.permits)...)
	case len(r.names) > 1 && once:
		return client.TryAcquireAll(ctx, ttl, r.names...)
	case len(r.names) > 1:
		return client.AcquireAll(ctx, ttl, r.names...)
	case r.shared && once:
		return client.TryAcquireShared(ctx, r.names[0], ttl)
	case r.shared:
		return client.AcquireShared(ctx, r.names[0], ttl)
	case once:
		return client.TryAcquire(ctx, r.names[0], ttl)
	}
	return client.Acquire(ctx, r.names[0], ttl)
}

// refused is the exit of a run without a lock.
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
	vars := slices.DeleteFunc(slices.Clone(r.settings.env.environ()), func(v string) bool {
		name, text, _ := strings.Cut(v, "=")
		return ofRun[name] || strings.HasPrefix(name, "REDLOCK_") && hasPassword(text)
	})
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

// leave closes a client after its pending releases. A release confirmed by a quorum has been sent to the others, so a
// silent node is not waited for.
func leave(client *redlock.Client, isReleased bool) {
	bound := time.Second
	if isReleased {
		bound = 5 * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	_ = client.Shutdown(ctx)
}
