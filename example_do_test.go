package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"math/rand/v2"
	"time"

	"github.com/redlock-go/redlock"
)

// Of the processes that try at midnight one makes the report. The lock is extended for as long as the function runs, and
// released behind it.
func ExampleClient_TryDo() {
	client, stop := connect()
	defer stop()
	made, goOn := make(chan error), make(chan struct{})
	for range 2 {
		go func() {
			made <- client.TryDo(context.Background(), "report", 30*time.Second, func(context.Context) error {
				<-goOn // ... make the report ...
				return nil
			})
		}()
	}
	fmt.Println("taken:", errors.Is(<-made, redlock.ErrTaken))
	close(goOn)
	fmt.Println("made:", <-made == nil)
	// Output:
	// taken: true
	// made: true
}

// A request waits for two seconds at most; its work may take longer. Its name is shown to operators.
func ExampleClient_With() {
	client, stop := connect()
	defer stop()
	ctx := context.Background()
	request := client.With(redlock.Options{Wait: 2 * time.Second, Name: "request-7"})
	err := request.Do(ctx, "cart:42", 10*time.Second, func(ctx context.Context) error {
		seen, err := client.Inspect(ctx, "cart:42")
		fmt.Println("held by", seen.Holder)
		hurried := client.With(redlock.Options{Wait: 10 * time.Millisecond})
		_, taken := hurried.Acquire(context.WithoutCancel(ctx), "cart:42", 10*time.Second)
		fmt.Println("taken:", errors.Is(taken, redlock.ErrTaken))
		return err
	})
	fmt.Println(err)
	// Output:
	// held by request-7
	// taken: true
	// <nil>
}

// A job that takes no time runs once in a fleet, although its processes fire up to some seconds apart.
func ExampleOptions() {
	client, stop := connect()
	defer stop()
	nightly := client.With(redlock.Options{AtLeast: time.Minute}) // less than from one night to the next
	for range 2 {
		err := nightly.TryDo(context.Background(), "report", 10*time.Second, func(context.Context) error {
			fmt.Println("made")
			return nil
		})
		fmt.Println("done already:", errors.Is(err, redlock.ErrTaken))
	}
	// Output:
	// made
	// done already: false
	// done already: true
}

// A deploy costs the successor no TTL: the functions of Do are told to end, and their locks are released.
func ExampleClient_Shutdown() {
	client, stop := connect()
	defer stop()
	began, ended := make(chan struct{}), make(chan error)
	go func() {
		ended <- client.Do(context.Background(), "consumer", 30*time.Second, func(ctx context.Context) error {
			close(began)
			<-ctx.Done() // ... consume ...
			fmt.Println("told to end:", context.Cause(ctx))
			return nil
		})
	}()
	<-began
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second) // until the process is killed
	defer cancel()
	fmt.Println("shutdown:", client.Shutdown(ctx))
	fmt.Println("Do:", <-ended)
	// Output:
	// told to end: redlock: client is closed
	// shutdown: <nil>
	// Do: <nil>
}

// An error of Do says whether the function has run.
func ExampleLostError() {
	client, stop := connect()
	defer stop()
	ctx := context.Background()
	err := client.Do(ctx, "report", time.Second, func(ctx context.Context) error {
		seen := must(client.Inspect(ctx, "report"))
		operator := must(client.Attach(ctx, "report", seen.Token(), time.Now().Add(seen.TTL)))
		if err := operator.Release(ctx); err != nil { // it takes the lock away
			return err
		}
		<-ctx.Done() // the next renewal finds it gone
		return nil
	})
	var lost *redlock.LostError
	switch {
	case errors.As(err, &lost):
		fmt.Println("it has run, and lost", lost.Key, "meanwhile:", errors.Is(err, redlock.ErrNotHeld))
	case errors.Is(err, redlock.ErrTaken):
		fmt.Println("another runs it")
	default:
		fmt.Println(err)
	}
	// Output: it has run, and lost report meanwhile: true
}

// A transfer needs both accounts.
func ExampleClient_DoAll() {
	client, stop := connect()
	defer stop()
	err := client.DoAll(context.Background(), 10*time.Second, []string{"account:7", "account:3"}, func(context.Context) error {
		fmt.Println("transferred")
		return nil
	})
	fmt.Println(err)
	// Output:
	// transferred
	// <nil>
}

// Where the votes were split each submitter tries again, after a pause of its own.
func ExampleErrSplit() {
	client, stop := connect()
	defer stop()
	done := make(chan error)
	op := &redlock.Op{Kind: redlock.OpAcquire, Key: []byte("orders:42"), TTL: 10 * time.Second, Done: func(op *redlock.Op) { done <- op.Err() }}
	for {
		if err := client.Submit(op); err != nil {
			log.Fatal(err)
		}
		err := <-done
		if err == redlock.ErrSplit {
			time.Sleep(time.Duration(rand.N(3)) * time.Millisecond) // some round trips
			continue
		}
		fmt.Println(err)
		break
	}
	// Output: <nil>
}

func ExampleClient_Do() {
	client, stop := connect()
	defer stop()

	err := client.Do(context.Background(), "orders:42", 10*time.Second, func(ctx context.Context) error {
		for step := range 3 {
			if err := ctx.Err(); err != nil { // the lock is lost
				return context.Cause(ctx)
			}
			fmt.Println("step", step)
		}
		return nil
	})
	fmt.Println("error:", err)
	// Output:
	// step 0
	// step 1
	// step 2
	// error: <nil>
}

// A call that gave up says how long it has waited, and what the last attempt met.
func ExampleAcquireError() {
	client, stop := connect()
	defer stop()
	lock := must(client.Acquire(context.Background(), "orders:42", 10*time.Second))
	defer lock.ReleaseAsync()

	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err := client.Acquire(ctx, "orders:42", 10*time.Second)
	var gaveUp *redlock.AcquireError
	if errors.As(err, &gaveUp) {
		fmt.Println(gaveUp.Key, errors.Is(err, redlock.ErrTaken), errors.Is(err, context.DeadlineExceeded))
	}
	// Output: orders:42 true true
}

// A release without waiting. It keeps its place: the acquire behind it wins.
func ExampleLock_ReleaseAsync() {
	client, stop := connect()
	defer stop()
	lock := must(client.Acquire(context.Background(), "orders:42", 10*time.Second))
	lock.ReleaseAsync()
	_, err := client.TryAcquire(context.Background(), "orders:42", 10*time.Second)
	fmt.Println(lock.Remaining(), err)
	// Output: 0s <nil>
}

// A long job ends its step, and lets another have the lock, where another waits for it.
func ExampleLock_Wanted() {
	client, stop := connect()
	defer stop()
	ctx := context.Background()
	lock := must(client.Acquire(ctx, "index", 10*time.Second))
	next := make(chan error)
	go func() {
		_, err := client.Acquire(ctx, "index", 10*time.Second)
		next <- err
	}()
	for {
		select {
		case <-lock.Wanted():
			fmt.Println("another waits:", lock.Release(ctx) == nil, <-next == nil)
			return
		case <-time.After(time.Millisecond): // ... a step of the work ...
		}
	}
	// Output: another waits: true true
}

// The function of Do returns early where another waits for the lock.
func ExampleWantedFrom() {
	client, stop := connect()
	defer stop()
	ctx := context.Background()
	began, next := make(chan struct{}), make(chan error)
	go func() {
		<-began
		next <- client.Do(ctx, "index", 10*time.Second, func(context.Context) error { return nil })
	}()
	err := client.Do(ctx, "index", 10*time.Second, func(ctx context.Context) error {
		close(began)
		<-redlock.WantedFrom(ctx)
		return nil
	})
	fmt.Println(err, <-next)
	// Output: <nil> <nil>
}

// What runs under a lock passes its fencing token on to the resource.
func ExampleFenceFrom() {
	client, stop := connect(fenced(time.Second / 2))
	defer stop()
	ctx := context.Background()
	if err := client.InitFencing(ctx); err != nil { // once for new nodes
		log.Fatal(err)
	}
	update := func(ctx context.Context) error {
		fence, ok := redlock.FenceFrom(ctx)
		fmt.Println(ok, fence > 0) // UPDATE ... SET fence = $1 WHERE id = 42 AND fence <= $1
		return nil
	}
	fmt.Println(client.Do(ctx, "orders:42", time.Second/2, update))
	// Output:
	// true true
	// <nil>
}

// What a program does with each error of a call. No error matches two of them.
func ExampleErrTaken() {
	advice := func(err error) string {
		switch {
		case err == nil:
			return "go on"
		case errors.Is(err, redlock.ErrTaken):
			return "leave it: another holder has the lock"
		case errors.Is(err, redlock.ErrNoQuorum), errors.Is(err, redlock.ErrNoAnswer), errors.Is(err, redlock.ErrExpired), errors.Is(err, redlock.ErrBusy):
			return "try again later"
		case errors.Is(err, redlock.ErrNotHeld):
			return "stop: the lock is lost, or was released"
		case errors.Is(err, redlock.ErrClosed), errors.Is(err, redlock.ErrStopped):
			return "end: as asked"
		case errors.Is(err, redlock.ErrConfig), errors.Is(err, redlock.ErrForgotten):
			return "call an operator"
		case errors.Is(err, redlock.ErrArgument):
			return "mend the program"
		}
		return "end: the context has"
	}
	client, stop := connect()
	defer stop()
	ctx := context.Background()
	lock, err := client.TryAcquire(ctx, "orders:42", 10*time.Second)
	fmt.Println(advice(err))
	_, err = client.TryAcquire(ctx, "orders:42", 10*time.Second)
	fmt.Println(advice(err))
	_, err = client.TryAcquire(ctx, "", 10*time.Second)
	fmt.Println(advice(err))
	fmt.Println(advice(lock.Release(ctx)), "-", advice(lock.Release(ctx)))
	// Output:
	// go on
	// leave it: another holder has the lock
	// mend the program
	// go on - stop: the lock is lost, or was released
}
