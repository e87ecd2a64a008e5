package redlock_test

import (
	"context"
	"fmt"
	"log"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock"
)

// A semaphore of three permits: of ten jobs three run at a time, in all processes together.
func ExampleClient_DoAny() {
	client, stop := connect()
	defer stop()
	permits := redlock.Permits("reports", 3)

	var running, most, done atomic.Int64
	var jobs sync.WaitGroup
	for range 10 {
		jobs.Go(func() {
			err := client.DoAny(context.Background(), 10*time.Second, permits, func(context.Context) error {
				if n := running.Add(1); n > most.Load() {
					most.Store(n)
				}
				defer running.Add(-1)
				time.Sleep(time.Millisecond)
				done.Add(1)
				return nil
			})
			if err != nil {
				log.Print(err)
			}
		})
	}
	jobs.Wait()
	fmt.Println(done.Load(), "jobs, more than 3 at once:", most.Load() > 3)
	// Output: 10 jobs, more than 3 at once: false
}

// A read/write lock for eight readers at most: a reader takes any of its keys, and a writer all.
func ExampleClient_AcquireAny() {
	client, stop := connect()
	defer stop()
	ctx, keys := context.Background(), redlock.Permits("table", 8)

	reader, err := client.AcquireAny(ctx, 10*time.Second, keys...)
	if err != nil {
		log.Fatal(err)
	}
	another, err := client.AcquireAny(ctx, 10*time.Second, keys...)
	if err != nil {
		log.Fatal(err)
	}
	_, err = client.TryAcquireAll(ctx, 10*time.Second, keys...)
	fmt.Println("a writer beside readers:", err)

	_, _ = reader.Release(ctx), another.Release(ctx)
	writer, err := client.AcquireAll(ctx, 10*time.Second, keys...)
	if err != nil {
		log.Fatal(err)
	}
	defer writer.ReleaseAsync()
	_, err = client.TryAcquireAny(ctx, 10*time.Second, keys...)
	fmt.Println("a reader beside a writer:", err)
	// Output:
	// a writer beside readers: redlock: taken: another holder has the lock
	// a reader beside a writer: redlock: taken: another holder has the lock
}

// The key says which permit it is: one of two accounts of a service, say.
func ExampleClient_TryAcquireAny() {
	client, stop := connect()
	defer stop()
	ctx := context.Background()

	one, err := client.TryAcquireAny(ctx, 10*time.Second, "account:a", "account:b")
	if err != nil {
		log.Fatal(err)
	}
	two, err := client.TryAcquireAny(ctx, 10*time.Second, "account:a", "account:b")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("two accounts:", one.Key() != two.Key())
	_, err = client.TryAcquireAny(ctx, 10*time.Second, "account:a", "account:b")
	fmt.Println(err)
	// Output:
	// two accounts: true
	// redlock: taken: another holder has the lock
}

func ExamplePermits() {
	fmt.Println(redlock.Permits("pool", 3))
	// Output: [{pool}:permit:1 {pool}:permit:2 {pool}:permit:3]
}
