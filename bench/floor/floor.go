// Package floor is the yardstick: how fast the masters allow one client thread
// to be, when that thread does nothing but the unavoidable.
//
// It takes and gives back locks in batches of Config.Concurrency. All requests
// are encoded ahead, releases are merged into calls of a script, one system
// call writes a batch to one node, and a step is over when a quorum of nodes
// has answered all of it; what later nodes answer is read in passing. Nothing
// is decided: every node must give exactly the bytes that an uncontended lock
// gets, and anything else ends the cell with an error. It is no lock client.
//
// With Goroutines each lock of a batch has a goroutine that parks until the
// reply has come: what a blocking call in Go can reach.
//
// # What was tried
//
// Two cores, shared with five Redis 7.0.15 masters on loopback and with other
// work; medians of 9 interleaved runs, whose spread was ±30 %. Pairs per second
// at a batch of 1, 16, 64 and 512, and the CPU of the client, which is the
// steadier figure.
//
//	                                 1      16      64     512   CPU µs/pair at 64, 512
//	one batch, ppoll              2500   31800   59700   85300   3.2   1.28
//	one batch, recv sweep first   2720   29200   63000   89400   2.8   1.26
//	one batch, epoll              2670   30900   68900   90800   2.8   1.18
//	two half batches alternating     -   20900   51100   82700   4.1   1.30
//
// So: one batch, since half batches cost twice the system calls, and ppoll
// asked straight away, the simplest of three that do not differ by more than
// the noise. Also tried:
//
//   - Syscall in place of RawSyscall for the wait: 2.0 in place of 1.2 µs of
//     CPU per pair at 512, because the runtime takes the processor away and has
//     to give it back. For write and read as well: 190 in place of 150 µs at 1.
//   - spinning in place of waiting: the p50 of a lone pair falls from 311 to
//     290 µs, its CPU grows by half, and the rate falls where cores are short.
//   - a blocking recv on one fixed node first: slower at 1 and 64.
//   - SO_RCVLOWAT, to be woken only for whole batches: a third less CPU at 512,
//     no more throughput, and a reply that comes in pieces may never wake us.
//   - edge-triggered epoll: up to a tenth less CPU at 512, no difference in
//     throughput beyond the noise.
//
// With goroutines, on a faster machine of two cores; CPU in µs per pair at 1, 64
// and 512, of two or three runs each, and of the floor itself beside them:
//
//	the floor                                             42   1.1   0.4
//	the last to come takes the step, channels of cap. 1   42   2.1   1.6
//	the same, woken by one broadcast of a sync.Cond        -   2.2   1.9
//	the same, and it yields once after waking              -   2.2   1.7
//	a goroutine of its own takes the steps                53   2.6   1.5
//	the same, on a locked thread                          85   2.5   1.7
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
	// Native releases by the servers' own compare-and-delete, a command for
	// each lock, in place of a script for many.
	Native bool
	// Goroutines has a goroutine park for each lock.
	Goroutines bool
}

// Name implements [harness.Driver].
func (d Driver) Name() string {
	if d.Native {
		return "floor-native"
	}
	if d.Goroutines {
		return "floor-goroutines"
	}
	return "floor"
}

// Open implements [harness.Driver].
func (d Driver) Open(ctx context.Context, cfg harness.Config) (harness.Session, error) {
	if cfg.Scenario == harness.Contended {
		return nil, fmt.Errorf("does not wait: %w", harness.ErrUnsupported)
	}
	release := scripted
	if d.Native {
		var err error
		if release, err = native(ctx, cfg.Nodes[0]); err != nil {
			return nil, err
		}
	}
	return open(ctx, cfg, newPlan(cfg, release), d.Goroutines)
}

// errNoQuorum ends a cell whose masters do not answer.
var errNoQuorum = errors.New("no quorum of nodes answered within " + patience.String())

// unexpected is the error for a node whose replies are not the planned ones.
func unexpected(addr string, got, want []byte) error {
	const enough = 64
	return fmt.Errorf("node %s answered %.*q, want %.*q", addr, enough, got, enough, want)
}
