package redlock_test

import (
	"fmt"
	"log"
	"time"

	"github.com/redlock-go/redlock"
)

// An event loop waits for no lock: it submits operations, so that those of all its callers share the client's batches, and
// what their callbacks report is an event as well.
func ExampleClient_Submit() {
	client, stop := connect()
	defer stop()
	events := make(chan *redlock.Op, 16) // with room for all that are under way: Done must not block
	submit := func(kind redlock.OpKind, token string) {
		op := &redlock.Op{Kind: kind, Key: []byte("orders:42"), TTL: 10 * time.Second}
		op.Done = func(op *redlock.Op) { events <- op }
		op.SetToken(token)
		if err := client.Submit(op); err != nil {
			log.Fatal(err) // then there is nothing to wait for
		}
	}
	var token string // that a caller has got, and names in its release
	submit(redlock.OpAcquire, "")
	for range 4 {
		op := <-events
		switch err := op.Err(); {
		case op.Kind == redlock.OpRelease:
			fmt.Println("released:", err == nil, "not held:", err == redlock.ErrNotHeld)
			submit(redlock.OpRelease, token) // again
		case err == redlock.ErrTaken:
			fmt.Println("taken")
			submit(redlock.OpRelease, token)
		case err != nil:
			log.Fatal(err)
		case op.Remaining() == 0: // it is too late, or the caller is gone
			submit(redlock.OpRelease, op.Token())
		default:
			fmt.Println("acquired")
			token = op.Token()
			submit(redlock.OpAcquire, "") // of another caller
		}
	}
	// Output:
	// acquired
	// taken
	// released: true not held: false
	// released: false not held: true
}

// A loop whose requests have a deadline stops reading them while too many wait. What waits for longer than Op.Within is in
// vain, and its releases keep the nodes busy.
func ExampleClient_Submit_backPressure() {
	const rate, deadline = 200_000, 20 * time.Millisecond // of operations a second: measure yours
	client, stop := connect(func(c *redlock.Config) { c.MaxWaiting = int(rate * deadline / time.Second / 2) })
	defer stop()
	const requests = 5000
	room, done := make(chan struct{}, 1), make(chan error, requests)
	for i := range requests {
		op := &redlock.Op{Kind: redlock.OpAcquire, Key: fmt.Append(nil, "orders:", i), TTL: 10 * time.Second, Within: deadline}
		op.Done = func(op *redlock.Op) {
			done <- op.Err() // nil, context.DeadlineExceeded, or another one
			select {
			case room <- struct{}{}:
			default: // the loop reads already
			}
		}
		for client.Submit(op) == redlock.ErrBusy {
			select {
			case <-room:
			case <-time.After(time.Millisecond): // what waits may be such releases alone, and they have no Done
			}
		}
	}
	for range requests {
		<-done
	}
	fmt.Println("each is answered, in time or soon after")
	// Output: each is answered, in time or soon after
}

// An operation that is not wanted any more is taken back, unless it is done already.
func ExampleClient_Cancel() {
	client, stop := connect()
	defer stop()
	done := make(chan error, 1)
	op := &redlock.Op{Kind: redlock.OpAcquire, Key: []byte("orders:42"), TTL: time.Second, Done: func(op *redlock.Op) { done <- op.Err() }}
	if err := client.Submit(op); err != nil {
		log.Fatal(err)
	}
	if !client.Cancel(op) { // else Done is not called, and a lock that was granted is released
		<-done
	}
	fmt.Println("canceled again:", client.Cancel(op))
	// Output: canceled again: false
}

// Readers share a lock through an event loop too: an Op of each kind, with the token of the first.
func ExampleOpKind() {
	client, stop := connect()
	defer stop()
	done := make(chan error)
	op := &redlock.Op{Key: []byte("table"), TTL: 10 * time.Second, Done: func(op *redlock.Op) { done <- op.Err() }}
	for _, op.Kind = range []redlock.OpKind{
		redlock.OpAcquire, redlock.OpExtend, redlock.OpRelease,
		redlock.OpAcquireShared, redlock.OpExtendShared, redlock.OpReleaseShared,
	} {
		if err := client.Submit(op); err != nil {
			log.Fatal(err)
		}
		fmt.Println(op.Kind, <-done)
	}
	// Output:
	// acquire <nil>
	// extend <nil>
	// release <nil>
	// acquire shared <nil>
	// extend shared <nil>
	// release shared <nil>
}

// A server that takes keys and TTLs from its clients checks them before.
func ExampleMaxKey() {
	check := func(nodes []string, key string, ttl time.Duration) bool {
		return len(nodes) <= redlock.MaxNodes && key != "" && len(key) <= redlock.MaxKey && ttl >= redlock.MinTTL && ttl <= redlock.MaxTTL
	}
	fmt.Println(check([]string{"a:6379"}, "orders:42", 10*time.Second), check([]string{"a:6379"}, "orders:42", time.Millisecond))
	// Output: true false
}
