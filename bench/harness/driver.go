// Package harness measures Redlock clients side by side: the same keys, the
// same masters, the same window, the same way of counting for every library.
//
// A library takes part through a [Driver]. What is counted is pairs, one
// acquire and one release of one lock, and a pair counts when its last reply
// has arrived inside the window, never when it was submitted. The masters run
// in a process of their own, so that CPU and allocations are the client's; the
// harness itself allocates nothing while it counts.
package harness

import (
	"context"
	"errors"
	"time"

	"github.com/redlock-go/redlock/bench/result"
)

// Unsupported is the error of a driver that cannot run a cell, on another operating system
// for instance. Its row shows the reason, and the run continues.
type Unsupported string

func (u Unsupported) Error() string { return "not supported: " + string(u) }

// ErrBroken is wrapped by a worker's error when its session cannot continue.
// It ends the cell.
var ErrBroken = errors.New("the session is broken")

// Scenario is the way in which the workers of a cell share keys.
type Scenario = result.Scenario

// The scenarios.
const (
	// Uncontended gives each worker its own keys.
	Uncontended Scenario = "uncontended"
	// Contended gives the same keys to all workers, in processes of their own. A driver
	// waits as its library does, with the default settings of the library; one that returns
	// without the lock is called again. The latency is that of the wait, from the first call
	// to the grant.
	Contended Scenario = "contended"
)

// Config describes, for a driver, the cell that it will run.
type Config struct {
	// Nodes are the addresses of the masters, host:port.
	Nodes []string
	// TTL is the time to live asked for each lock.
	TTL time.Duration
	// Scenario is the way in which the workers share keys.
	Scenario Scenario
	// Concurrency is the number of workers, or of locks in a batch for a
	// driver that has no workers.
	Concurrency int
	// Keys holds the keys of each worker, through which it cycles.
	Keys [][]string
	// Hold is how long a worker keeps each lock, and Rate how many pairs all begin in a second:
	// see [Config.Paced].
	Hold time.Duration
	Rate int
	// Clients is how many of them the workers share, in drivers of this library.
	Clients int
	// Patient is set where there may be more to do than this machine does in time: nodes are waited for then.
	// Share asks a [Sharer] for shared locks.
	Patient, Share bool
	// Killed is set where nodes are; Persistent ones come back with all they had.
	Killed, Persistent bool
}

// Paced reports whether the workers of an uncontended cell pause. A driver without workers, or one
// that has them wait for each other, does not support that.
func (c Config) Paced() bool { return c.Scenario == Uncontended && (c.Hold > 0 || c.Rate > 0) }

// NotPaced is the error of such a driver.
const NotPaced = Unsupported("has no workers that pause")

// Driver is one library, or one way of using it.
type Driver interface {
	// Name is the name under which it is chosen and reported.
	Name() string
	// Open connects to the masters. It is called anew for each cell, and
	// nothing that it does is counted.
	Open(ctx context.Context, cfg Config) (Session, error)
}

// Weaker is a driver that promises less than a lock on a majority of
// independent masters: its figures are no answer to the same question.
type Weaker interface {
	Driver
	// Weaker is the promise, in a few words.
	Weaker() string
}

// weakness is the driver's own description of its weaker promise, or "".
func weakness(d Driver) string {
	if w, ok := d.(Weaker); ok {
		return w.Weaker()
	}
	return ""
}

// Session is a driver connected for one cell. It is either a [Pool], whose
// workers the harness runs, or a [Runner], which runs the cell itself.
type Session interface {
	Close() error
}

// Pool is a session whose workers are driven by the harness, one goroutine
// each.
type Pool interface {
	Session
	// Worker returns a new worker. It is called before anything is counted.
	Worker() (Worker, error)
}

// Worker holds at most one lock at a time. Only one goroutine uses it, so it
// can keep its lock in a field instead of allocating one.
type Worker interface {
	// Acquire asks for the lock on key. It returns false without an error if another holds
	// it, at once or after waiting, as the library does.
	Acquire(ctx context.Context, key string) (bool, error)
	// Release gives back the lock that the last Acquire took.
	Release(ctx context.Context) error
}

// Lasting is a worker that knows how long its lock is valid. For other workers the validity
// is the TTL less 1 % and 2 ms, from the grant on.
type Lasting interface{ Remaining() time.Duration }

// Leaver is a worker that is notified when it is not called any more.
type Leaver interface{ Leave() }

// Runner is a session without workers, which runs the whole cell itself.
type Runner interface {
	Session
	// Run works, and reports to probe, until probe.Running returns false.
	Run(ctx context.Context, probe *Probe) error
}
