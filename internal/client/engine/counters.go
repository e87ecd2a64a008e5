package engine

import (
	"sync/atomic"

	"github.com/redlock-go/redlock/internal/base/metrics"
	"github.com/redlock-go/redlock/internal/wire/command"
	"github.com/redlock-go/redlock/quorum"
)

// Votes is one node's votes, by [quorum.Outcome].
type Votes [quorum.Failed + 1]uint64

// ending is a field of metrics.Results.
type ending uint8

const (
	won ending = iota
	denied
	noQuorum
	expired
	cancelled
	refused
	endings
)

// endingOf is the ending for an operation's error. Errors other than the engine's are those of contexts.
func endingOf(err error) ending {
	switch err {
	case nil:
		return won
	case ErrTaken, ErrGated, ErrSplit, ErrNotHeld:
		return denied
	case ErrNoQuorum:
		return noQuorum
	case ErrExpired:
		return expired
	case ErrBusy, ErrClosed:
		return refused
	}
	return cancelled
}

// counters are the counts for Stats. They belong to the driver; other goroutines count elsewhere, rarely.
type counters struct {
	ended      [command.Kinds][endings]uint64
	elsewhere  [command.Kinds][endings]atomic.Uint64
	votes      [quorum.MaxNodes]Votes
	times      metrics.Histogram
	cleanups   uint64
	batches    uint64
	operations uint64
}

func (c *counters) addTo(r *metrics.Results, kind Kind) {
	for e, field := range []*uint64{won: &r.Won, denied: &r.Denied, noQuorum: &r.NoQuorum, expired: &r.Expired, cancelled: &r.Cancelled, refused: &r.Refused} {
		*field += c.ended[kind][e] + c.elsewhere[kind][e].Load()
	}
}

// count counts an ended operation. The driver lock is held.
func (c *counters) count(op *Op, how ending) {
	if !op.OfSet {
		c.ended[op.Kind][how]++
	}
}

// Note counts an operation ended by err before it was submitted, or one of several parts.
func (c *counters) Note(kind Kind, err error) { c.elsewhere[kind][endingOf(err)].Add(1) }

// noteOp is count without the driver lock.
func (c *counters) noteOp(op *Op, err error) {
	if !op.OfSet {
		c.Note(op.Kind, err)
	}
}

// correct counts an operation as ended with err, after it was counted as won.
func (c *counters) correct(op *Op, err error) {
	if !op.OfSet {
		c.Note(op.Kind, err)
		c.elsewhere[op.Kind][won].Add(^uint64(0)) // one less
	}
}
