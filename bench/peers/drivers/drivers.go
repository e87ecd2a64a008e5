// Package drivers holds what redlock is measured against, one library a file.
//
// Every peer gets what its documentation recommends for this work, and more
// where that makes it faster: a pool with a connection for every worker, all of
// them open before anything is counted, no logging, no repeats that the
// algorithm does not ask for, and scripts that are loaded already.
package drivers

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/redlock-go/redlock/bench/floor"
	"github.com/redlock-go/redlock/bench/harness"
	"github.com/redlock-go/redlock/bench/ours"
)

// timeout bounds a peer's dials, reads and writes. It is what redsync itself
// allows the nodes for an acquisition at a TTL of ten seconds (expiry / 20), so
// that no pool gives up on a node later than the library would.
const timeout = 500 * time.Millisecond

// errNotHeld is for a lock that was lost before it was given back.
var errNotHeld = errors.New("the lock was not held any more")

// All lists every driver: ours first, the yardstick last. Those after it are not in Usual.
func All() []harness.Driver {
	all := []harness.Driver{
		ours.Driver{},
		ours.Driver{Patient: true},
		ours.Driver{Portable: true},
		AutoPipeline{},
		AutoPipeline{Quorum: true},
		Redsync{Pool: GoRedis},
		Redsync{Pool: GoRedis, FailFast: true},
		Redsync{Pool: Redigo},
		Redsync{Pool: Redigo, FailFast: true},
		Redsync{Pool: Rueidis},
		Redsync{Pool: Rueidis, FailFast: true},
		Redislock{},
		Rueidislock{},
		floor.Driver{},
		floor.Driver{Goroutines: true},
		ours.Driver{Scripted: true},
		ours.Driver{NoHandOver: true},
		ours.Submitter{},
		Hash{},
		Counter{},
	}
	for _, d := range Exchanges {
		all = append(all, d)
	}
	return all
}

// Usual names the drivers that run unless others are chosen.
func Usual() (names []string) {
	for _, d := range All() {
		if d == (ours.Driver{Scripted: true}) {
			break
		}
		names = append(names, d.Name())
	}
	return names
}

// closers is a list of what a session has opened.
type closers []func() error

// Close closes everything, and returns the errors.
func (all closers) Close() error {
	var errs []error
	for _, c := range all {
		errs = append(errs, c())
	}
	return errors.Join(errs...)
}

// well is a way to close that cannot fail.
func well(end func()) func() error { return func() error { end(); return nil } }

// session is a [harness.Pool]: what was opened, and how a worker of it is made.
type session struct {
	closers
	worker func() harness.Worker
}

func (s *session) Worker() (harness.Worker, error) { return s.worker(), nil }

// openAll opens each of the nodes. If one cannot be opened, those before it are closed.
func openAll[T any](nodes []string, open func(addr string) (T, func() error, error)) (all []T, opened closers, err error) {
	for _, addr := range nodes {
		one, closed, err := open(addr)
		if err != nil {
			return nil, nil, errors.Join(fmt.Errorf("%s: %w", addr, err), opened.Close())
		}
		all, opened = append(all, one), append(opened, closed)
	}
	return all, opened, nil
}

// fill opens all connections of a pool, by taking them all at once. Closing one
// gives it back.
func fill(conns int, take func() (io.Closer, error)) error {
	for range conns {
		c, err := take()
		if err != nil {
			return err
		}
		defer c.Close()
	}
	return nil
}
