// Package floor is the yardstick: the throughput of one client thread that does only what no
// client can avoid.
//
// It acquires and releases locks in batches of Config.Concurrency. All requests are encoded
// ahead, releases are merged into calls of a script, one system call writes a batch to one
// node, and a step ends when a quorum of nodes has answered all of it; later answers are read
// in passing. Nothing is decided: each node must answer exactly what an uncontended lock gets,
// and anything else ends the cell with an error. It is no lock client.
//
// With Goroutines each lock of a batch has a goroutine that parks until the reply has come: the
// limit of a blocking call in Go. With Obliged each has the duties of a lock client as well: the limit of
// a blocking lock client.
//
// bench/NOTES.md has what was tried in its place.
package floor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redlock-go/redlock/bench/harness"
)

const (
	// patience is how long a quorum may take before the masters are given up.
	patience = 5 * time.Second
	// greeting is how long a node may take to be connected to and to answer.
	greeting = time.Second
)

// Driver is the yardstick as a driver.
type Driver struct {
	// Goroutines has a goroutine park for each lock.
	Goroutines bool
	// Obliged is Goroutines, and gives each lock a fresh token, commands of its own, votes, two readings
	// of the clock and looks at its context.
	Obliged bool
}

func (d Driver) Name() string {
	switch {
	case d.Obliged:
		return "floor-obliged"
	case d.Goroutines:
		return "floor-goroutines"
	}
	return "floor"
}

func (d Driver) Open(ctx context.Context, cfg harness.Config) (harness.Session, error) {
	if cfg.Scenario == harness.Contended {
		return nil, harness.Unsupported("does not wait for a lock")
	}
	if cfg.Paced() {
		return nil, harness.NotPaced
	}
	return open(ctx, cfg, newPlan(cfg), d)
}

// errNoQuorum ends a cell whose masters do not answer.
var errNoQuorum = errors.New("no quorum of nodes answered within " + patience.String())

// unexpected is the error for a node whose replies are not the planned ones.
func unexpected(addr string, got, want []byte) error {
	const enough = 64
	return fmt.Errorf("node %s answered %.*q, want %.*q", addr, enough, got, enough, want)
}
