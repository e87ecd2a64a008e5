package redlock_test

import (
	"context"
	"errors"
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

// A pool of two accounts: a caller waits for the first to be given back.
func ExampleClient_AcquireAny() {
	client, stop := connect()
	defer stop()
	ctx, keys := context.Background(), redlock.Permits("account", 2)

	for range keys {
		must(client.AcquireAny(ctx, 10*time.Millisecond, keys...))
	}
	next, err := client.AcquireAny(ctx, 10*time.Second, keys...)
	fmt.Println("the TTL of a holder that is gone has ended:", err == nil)
	next.ReleaseAsync()
	// Output: the TTL of a holder that is gone has ended: true
}

// Readers of a table hold its lock together. Who changes it is alone.
func ExampleClient_AcquireShared() {
	client, stop := connect()
	defer stop()
	ctx := context.Background()

	reader := must(client.AcquireShared(ctx, "table", 10*time.Second))
	another := must(client.TryAcquireShared(ctx, "table", 10*time.Second))
	state := must(client.Inspect(ctx, "table"))
	_, err := client.TryAcquire(ctx, "table", 10*time.Second)
	fmt.Printf("%v by %d of %v, a writer: %v\n", state.Status, state.Holders, state.Names, err)

	_, _ = reader.Release(ctx), another.Release(ctx)
	err = client.Do(ctx, "table", 10*time.Second, func(context.Context) error {
		_, err := client.TryAcquireShared(ctx, "table", 10*time.Second)
		return err
	})
	fmt.Println("a reader beside a writer:", err)
	// Output:
	// shared by 2 of [worker-7], a writer: redlock: taken: another holder has the lock
	// a reader beside a writer: redlock: taken: another holder has the lock
}

// Work that reads goes on beside other such work; TryDoShared skips it while a writer is at work, or waits.
func ExampleClient_DoShared() {
	client, stop := connect()
	defer stop()
	ctx := context.Background()

	read := func(context.Context) error {
		return client.TryDoShared(ctx, "table", 10*time.Second, func(context.Context) error { return nil })
	}
	fmt.Println(client.DoShared(ctx, "table", 10*time.Second, read))
	// Output: <nil>
}

// The key says which permit it is: one of two accounts of a service, say.
func ExampleClient_TryAcquireAny() {
	client, stop := connect()
	defer stop()
	ctx := context.Background()

	one := must(client.TryAcquireAny(ctx, 10*time.Second, "account:a", "account:b"))
	two := must(client.TryAcquireAny(ctx, 10*time.Second, "account:a", "account:b"))
	fmt.Println("two accounts:", one.Key() != two.Key())
	_, err := client.TryAcquireAny(ctx, 10*time.Second, "account:a", "account:b")
	fmt.Println(err)
	// Output:
	// two accounts: true
	// redlock: taken: another holder has the lock
}

func ExamplePermits() {
	fmt.Println(redlock.Permits("pool", 3))
	fmt.Println(redlock.Permits("db{7}", 1), redlock.Permits("a{}b", 1), redlock.Permits("none", 0))
	// Output:
	// [{pool}:permit:1 {pool}:permit:2 {pool}:permit:3]
	// [db{7}:permit:1] [{a{}b}:permit:1] []
}

// A job that needs both accounts, or leaves it. The locks of a program are kept by name.
func ExampleClient_TryAcquireAll() {
	client, stop := connect()
	defer stop()
	ctx, held := context.Background(), map[string]redlock.Lock{}
	for _, job := range []string{"transfer", "audit"} {
		lock, err := client.TryAcquireAll(ctx, 10*time.Second, "account:3", "account:7")
		if errors.Is(err, redlock.ErrTaken) {
			fmt.Println(job, "is left")
			continue
		}
		held[job] = lock
	}
	for job, lock := range held {
		fmt.Println(job, "holds", lock.Keys(), lock.Release(ctx))
	}
	// Output:
	// audit is left
	// transfer holds [account:3 account:7] <nil>
}

// How many attempts took up to 10 ms: the last bounds are seconds, and what is beyond them is counted too.
func ExampleTimeBounds() {
	client, stop := connect()
	defer stop()
	for range 3 {
		if lock, err := client.TryAcquire(context.Background(), "orders:42", 10*time.Second); err == nil {
			lock.ReleaseAsync()
		}
	}
	attempts := uint64(0)
	for _, count := range client.Stats().AcquireTimes.Counts { // Counts[i] is of times up to TimeBounds[i]
		attempts += count
	}
	fmt.Println(attempts, "attempts, in classes from", redlock.TimeBounds[0], "to", redlock.TimeBounds[len(redlock.TimeBounds)-1])
	// Output: 3 attempts, in classes from 100µs to 30s
}
