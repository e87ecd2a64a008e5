package testkit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Patience bounds every wait of a test. Only a failing test reaches it. It is also the timeout of
// clients in no need of one: a call that ends well before Patience has not waited for a timeout.
const Patience = time.Minute

// Promptly bounds calls that must not wait for any timeout of a client.
const Promptly = Patience / 4

// Await polls until a condition holds, for at most Patience.
func Await(t testing.TB, what string, condition func() bool) {
	t.Helper()
	AwaitFor(t, Patience, what, condition)
}

// AwaitFor is Await with another bound. It looks at shorter intervals first: most conditions hold after microseconds,
// and the looks of a long wait would take the processor from what it waits for.
func AwaitFor(t testing.TB, bound time.Duration, what string, condition func() bool) {
	t.Helper()
	for began := time.Now(); ; {
		waited := time.Since(began) // before the last look: the process may have been stopped
		if condition() {
			return
		}
		if waited > bound {
			require.Failf(t, "waited in vain", "%s: not within %v", what, bound)
		}
		time.Sleep(min(20*time.Microsecond+waited/20, 10*time.Millisecond))
	}
}

// AtOnce runs f, and fails the test if f waits for a timeout.
func AtOnce(t testing.TB, f func()) {
	t.Helper()
	start := time.Now()
	f()
	require.Less(t, time.Since(start), Patience/3, "not at once")
}

// Within runs f in another goroutine and fails the test if f does not return within a bound. So a
// hanging call ends one test, not the binary.
func Within(t testing.TB, bound time.Duration, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(bound):
		require.FailNow(t, what+" does not return")
	}
}

// Start makes a call in the background and returns the channel of its error. A panic of the call is
// such an error.
func Start(call func() error) <-chan error {
	c := make(chan error, 1)
	go func() {
		defer func() {
			if v := recover(); v != nil {
				c <- fmt.Errorf("panic: %v", v)
			}
		}()
		c <- call()
	}()
	return c
}

// Outcome receives the error of a call, and fails the test if none comes Promptly.
func Outcome(t testing.TB, what string, c <-chan error) error {
	t.Helper()
	select {
	case err := <-c:
		return err
	case <-time.After(Promptly):
		require.FailNow(t, what+" does not return")
		return nil
	}
}

// Try makes a call that must return Promptly, and returns its error.
func Try(t testing.TB, what string, call func() error) error {
	t.Helper()
	return Outcome(t, what, Start(call))
}

// Join waits for goroutines, and fails the test if they do not end.
func Join(t testing.TB, goroutines *sync.WaitGroup) {
	t.Helper()
	Within(t, 2*Patience, "a goroutine", goroutines.Wait)
}

// Result is the result of a call in the background.
type Result[T any] struct {
	Value T
	Err   error
}

// InBackground makes a call and returns the channel of its result.
func InBackground[T any](f func() (T, error)) <-chan Result[T] {
	c := make(chan Result[T], 1)
	go func() {
		v, err := f()
		c <- Result[T]{v, err}
	}()
	return c
}

// Get receives from c, and fails the test if nothing comes within Patience.
func Get[T any](t testing.TB, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(Patience):
		require.FailNow(t, "no result")
	}
	return v
}

// Must is the value of a call that must not fail: Must(call())(t).
func Must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		require.NoError(t, err)
		return v
	}
}

// As is the first error of a type that err wraps. It fails the test if there is none.
func As[E error](t testing.TB, err error) (as E) {
	t.Helper()
	require.ErrorAs(t, err, &as)
	return as
}

// Limited is the context of a test for so long.
func Limited(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// IsClosed reports whether c is closed, or has something to receive.
func IsClosed[T any](c <-chan T) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// IsAny reports whether err is one of the known errors.
func IsAny(err error, known ...error) bool {
	return slices.ContainsFunc(known, func(k error) bool { return errors.Is(err, k) })
}
