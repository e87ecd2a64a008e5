package engine

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/redlock-go/redlock/quorum"
)

// Event is something that user code hears of, other than the completion of an operation. The goroutine of callbacks calls
// Report, once.
type Event interface{ Report() }

// News is an Event, and always reported. Of others there is room for maxEvents.
type News func()

// Report implements Event.
func (f News) Report() { f() }

// Vote is the vote of a node on an operation.
type Vote struct {
	Node    int
	Kind    Kind
	Outcome quorum.Outcome
	Err     error // of one that failed
}

// Attempt is the end of an operation, with its votes up to the verdict. It may have been sent to no node.
type Attempt struct {
	Ctx   context.Context // of its caller; nil: no caller waits
	Kind  Kind
	Key   string
	Took  time.Duration
	Ended time.Time
	Votes quorum.Tally
	Err   error
}

// Attempts are the events of all attempts.
var Attempts Events[Attempt]

var votesCast Events[Vote]

// Events makes events of values for hooks. A reported one is used again.
type Events[T any] struct{ pool sync.Pool }

// event is the report of a value to a hook.
type event[T any] struct {
	all   *Events[T]
	hook  func(T)
	value T
}

// For is the report of a value to a hook.
func (all *Events[T]) For(hook func(T), value T) Event {
	e, ok := all.pool.Get().(*event[T])
	if !ok {
		e = new(event[T])
	}
	*e = event[T]{all, hook, value}
	return e
}

// Report implements Event.
func (e *event[T]) Report() {
	its := *e
	*e = event[T]{}
	its.all.pool.Put(e)
	its.hook(its.value)
}

// Asked is err, or the error of ctx where its end has ended a call. ctx is user code, and may block. It may be nil.
func Asked(ctx context.Context, err error) error {
	if err == context.Canceled && ctx != nil {
		err = cmp.Or(ctx.Err(), err)
	}
	return err
}
