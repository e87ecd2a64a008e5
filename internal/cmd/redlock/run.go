package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redlock-go/redlock"
)

const aboutRun = `
Run holds the lock while a program runs, and keeps it alive. The program is not run by a shell. It has a
process group, and gets every signal that redlock gets. Its environment has

  REDLOCK_KEY    the lock             REDLOCK_FENCE  the fencing token, 0 without -fenced
  REDLOCK_TOKEN  the token            REDLOCK_UNTIL  until when the lock is valid if it is not extended,
                                                     in milliseconds of Unix time

If the lock cannot be kept, the program gets SIGTERM when no more than -kill-after is left of it, and
SIGKILL when nothing is left: it ends before another holder begins. So does all that it has started, also when
it ends and leaves jobs in the background, unless -wait-children is given, and when redlock itself is killed:
a second process sees to that. What has left its process group (setsid, daemons) is not ended. On systems
other than Unix the program alone is.

  redlock run -wait 30s backup -- pg_dump -f /backup/all.sql
  redlock run -wait-children deploy -- make deploy
  redlock run -config /etc/redlock.conf -kill-after 20s -ttl 60s report -- ./report.sh

Variables that begin with REDLOCK_ are settings, which may hold passwords: the program gets none but the four.

The exit status is that of the program, 128 and the signal that ended it or the wait for the lock, or 75: the lock
is taken; 69: too few nodes answer; 70: the lock was lost; 64: wrong arguments; 126: the program cannot be run;
127: there is none.`

// running is the settings of run.
type running struct {
	ttl, killAfter time.Duration
	wait           string
	waitChildren   bool
}

// runner runs a program under a lock.
type runner struct {
	*settings
	running
}

func run(ctx context.Context, env *environment, args []string) error {
	r := runner{settings: newSettings(env, "run [settings] name -- program [argument…]", aboutRun)}
	rest, err := r.parse(args)
	if err != nil {
		return err
	}
	r.running = r.settings.run
	if len(rest) < 3 || rest[1] != "--" {
		return usage("run wants: name -- program [argument…]")
	}
	if r.killAfter == 0 {
		r.killAfter = min(r.ttl/2, 5*time.Second)
	}
	if r.killAfter < 0 || r.killAfter > r.ttl/2 {
		return usage("-kill-after is %v, at most half the TTL of %v works: a lock that is renewed has two thirds left", r.killAfter, r.ttl)
	}
	path, err := exec.LookPath(rest[2])
	if errors.Is(err, os.ErrPermission) {
		return &exit{126, err}
	} else if err != nil {
		return &exit{127, err}
	}
	client, err := r.connect(r.logger())
	if err != nil {
		return err
	}
	defer shutdown(client)
	lock, err := r.acquire(ctx, client, rest[0])
	if err != nil {
		return err
	}
	child := exec.Command(path, rest[3:]...)
	child.Args[0] = rest[2]
	return r.hold(lock, child)
}

// acquire waits for the lock as told by -wait.
func (r *runner) acquire(ctx context.Context, client *redlock.Client, name string) (redlock.Lock, error) {
	wait, err := time.ParseDuration(r.wait)
	switch {
	case r.wait == "forever":
	case err != nil || wait < 0:
		return redlock.Lock{}, usage("-wait is %q, want a duration such as 30s, 0 or forever", r.wait)
	case wait == 0:
		lock, err := client.TryAcquire(ctx, name, r.ttl)
		return lock, statusOf(err)
	default:
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, wait)
		defer cancel()
	}
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, os.Interrupt)
	defer signal.Stop(asked)
	lock, err := client.Acquire(ctx, name, r.ttl)
	if errors.Is(err, context.Canceled) {
		ended := syscall.SIGTERM
		if len(asked) > 0 {
			ended = syscall.SIGINT
		}
		return lock, &exit{128 + int(ended), err}
	}
	return lock, statusOf(err)
}

// hold runs the program while the lock is held, and releases the lock after its end.
func (r *runner) hold(lock redlock.Lock, child *exec.Cmd) error {
	kept, stop := lock.KeepAlive(context.Background())
	defer stop()
	child.Stdin, child.Stdout, child.Stderr = r.env.in, r.env.out, r.env.err
	child.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "REDLOCK_") })
	child.Env = append(child.Env,
		"REDLOCK_KEY="+lock.Key(), "REDLOCK_TOKEN="+lock.Token(), "REDLOCK_FENCE="+strconv.FormatUint(lock.Fence(), 10),
		"REDLOCK_UNTIL="+strconv.FormatInt(time.Now().Add(lock.Remaining()).UnixMilli(), 10))
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, forwarded...)
	defer signal.Stop(signals)
	group, err := start(child, r.killAfter/2)
	if err != nil {
		release(lock)
		return &exit{126, err}
	}
	lost := r.supervise(lock, kept, group, signals)
	group.close()
	if lost != nil {
		return &exit{exitLost, fmt.Errorf("the lock was lost: %w", lost)}
	}
	release(lock)
	status := child.ProcessState.ExitCode()
	if s, ok := child.ProcessState.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		status = 128 + int(s.Signal())
	}
	if status != 0 {
		return &exit{status, nil}
	}
	return nil
}

// release releases the lock within a moment: its TTL ends it anyway.
func release(lock redlock.Lock) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = lock.Release(ctx)
}

// supervise passes signals on until the group has ended, and ends it before the lock does. After the
// program's end, its remaining processes get SIGTERM, and SIGKILL after -kill-after. supervise returns
// why the lock was lost, or nil.
func (r *runner) supervise(lock redlock.Lock, kept context.Context, group *group, signals <-chan os.Signal) (lost error) {
	look := time.NewTimer(0) // a look at the time left: the clock of a timer stands still while the machine is suspended
	defer look.Stop()
	var killAt time.Time // for remaining processes of the program
	for ended := group.ended; ; {
		select {
		case <-ended:
			ended = nil
		case s := <-signals:
			group.signal(s)
			continue
		case <-kept.Done():
		case <-look.C:
		}
		if ended == nil {
			switch isOver := !killAt.IsZero() && time.Now().After(killAt); {
			case lost != nil || isOver || !group.hasOthers():
				return lost
			case killAt.IsZero() && !r.waitChildren:
				group.signal(syscall.SIGTERM)
				killAt = time.Now().Add(r.killAfter)
			}
		}
		left := lock.Remaining()
		switch {
		case lost == nil && (kept.Err() != nil || left <= r.killAfter):
			if lost = context.Cause(kept); lost == nil {
				lost = fmt.Errorf("too few nodes have answered, and %v are left: %w", left.Round(time.Millisecond), redlock.ErrNoQuorum)
			}
			grace := min(r.killAfter, left)
			if errors.Is(lost, redlock.ErrNotHeld) {
				grace = r.killAfter // it was deleted: the program may clean up, as after a kill by hand
			}
			group.hurry()
			group.signal(syscall.SIGTERM)
			kept = context.Background()
			look.Reset(grace)
		case lost != nil:
			group.signal(os.Kill)
			look.Reset(time.Second)
		case ended == nil:
			look.Reset(childPause)
		default:
			look.Reset(min(left-r.killAfter, lookPause) + time.Millisecond)
		}
	}
}

// lookPause bounds the pause between two looks at the time left of the lock.
const lookPause = 100 * time.Millisecond

// childPause is the pause between two looks for remaining processes.
const childPause = 20 * time.Millisecond
