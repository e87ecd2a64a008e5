package usage

import (
	"context"
	"math"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	recipe "go.etcd.io/etcd/client/v3/experimental/recipes"

	"github.com/redlock-go/redlock"
)

// Read calls work beside other readers, and beside no writer.
func Read(ctx context.Context, client *redlock.Client, name string, work func(context.Context) error) error {
	return client.DoShared(ctx, name, 10*time.Second, work)
}

// Write calls work alone.
func Write(ctx context.Context, client *redlock.Client, name string, work func(context.Context) error) error {
	return client.Do(ctx, name, 10*time.Second, work)
}

// EtcdRead is Read by etcd, whose lock does not look at ctx.
func EtcdRead(ctx context.Context, client *clientv3.Client, name string, work func(context.Context) error) error {
	session, err := concurrency.NewSession(client, concurrency.WithTTL(10))
	if err != nil {
		return err
	}
	defer session.Close()
	lock := recipe.NewRWMutex(session, name)
	if err := lock.RLock(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(session.Ctx(), cancel)()
	return work(ctx)
}

// EtcdWrite is Write by etcd.
func EtcdWrite(ctx context.Context, client *clientv3.Client, name string, work func(context.Context) error) error {
	session, err := concurrency.NewSession(client, concurrency.WithTTL(10))
	if err != nil {
		return err
	}
	defer session.Close()
	lock := recipe.NewRWMutex(session, name)
	if err := lock.Lock(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(session.Ctx(), cancel)()
	return work(ctx)
}

// CounterRead is Read by redsync and a counter, on one server. It keeps nothing alive: work has ten seconds.
func CounterRead(ctx context.Context, client *redis.Client, locks *redsync.Redsync, name string, work func(context.Context) error) error {
	mutex := locks.NewMutex(name+":mutex", redsync.WithTries(math.MaxInt32))
	if err := mutex.LockContext(ctx); err != nil {
		return err
	}
	_, err := client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.Incr(ctx, name+":readers")
		return p.PExpire(ctx, name+":readers", 10*time.Second).Err()
	})
	_, _ = mutex.UnlockContext(context.WithoutCancel(ctx))
	if err != nil {
		return err
	}
	defer client.Decr(context.WithoutCancel(ctx), name+":readers")
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return work(ctx)
}

// CounterWrite is Write by redsync and a counter.
func CounterWrite(ctx context.Context, client *redis.Client, locks *redsync.Redsync, name string, work func(context.Context) error) error {
	mutex := locks.NewMutex(name+":mutex", redsync.WithTries(math.MaxInt32), redsync.WithExpiry(20*time.Second))
	if err := mutex.LockContext(ctx); err != nil {
		return err
	}
	defer mutex.UnlockContext(context.WithoutCancel(ctx))
	for {
		readers, err := client.Get(ctx, name+":readers").Int()
		if err != nil && err != redis.Nil {
			return err
		}
		if readers <= 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	ctx, cancel := context.WithDeadline(ctx, mutex.Until())
	defer cancel()
	return work(ctx)
}
