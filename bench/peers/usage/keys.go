package usage

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/rueidis/rueidislock"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/redlock-go/redlock"
)

// Limited calls work in n places at a time, in all processes together.
func Limited(ctx context.Context, client *redlock.Client, name string, n int, work func(context.Context) error) error {
	return client.DoAny(ctx, 10*time.Second, redlock.Permits(name, n), work)
}

// EtcdLimited is the same by etcd, which has no semaphore: who has fewer than n keys before its own goes in.
func EtcdLimited(ctx context.Context, client *clientv3.Client, name string, n int, work func(context.Context) error) error {
	session, err := concurrency.NewSession(client, concurrency.WithTTL(10))
	if err != nil {
		return err
	}
	defer session.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(session.Ctx(), cancel)()
	own, err := client.Put(ctx, fmt.Sprintf("%s/%x", name, session.Lease()), "", clientv3.WithLease(session.Lease()))
	if err != nil {
		return err
	}
	for {
		before, err := client.Get(ctx, name+"/", clientv3.WithPrefix(), clientv3.WithMaxCreateRev(own.Header.Revision-1), clientv3.WithKeysOnly())
		if err != nil {
			return err
		}
		if len(before.Kvs) < n {
			return work(ctx)
		}
		turn, stop := context.WithCancel(ctx)
		<-client.Watch(turn, name+"/", clientv3.WithPrefix(), clientv3.WithRev(before.Header.Revision+1), clientv3.WithFilterPut())
		stop()
	}
}

// Transfer calls move under the locks of two accounts.
func Transfer(ctx context.Context, client *redlock.Client, from, to string, move func(context.Context) error) error {
	return client.DoAll(ctx, 10*time.Second, []string{from, to}, move)
}

// EtcdTransfer is the same by etcd. Locks are taken in one order, or two transfers would wait for each other.
func EtcdTransfer(ctx context.Context, client *clientv3.Client, from, to string, move func(context.Context) error) error {
	session, err := concurrency.NewSession(client, concurrency.WithTTL(10))
	if err != nil {
		return err
	}
	defer session.Close()
	for _, key := range []string{min(from, to), max(from, to)} {
		if err := concurrency.NewMutex(session, key).Lock(ctx); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(session.Ctx(), cancel)()
	return move(ctx)
}

// RueidisTransfer is the same by rueidislock.
func RueidisTransfer(ctx context.Context, locker rueidislock.Locker, from, to string, move func(context.Context) error) error {
	for _, key := range []string{min(from, to), max(from, to)} {
		held, release, err := locker.WithContext(ctx, key)
		if err != nil {
			return err
		}
		defer release()
		ctx = held
	}
	return move(ctx)
}

// Jobs runs jobs, a goroutine each, under a lock each, with a fencing token for what they write.
func Jobs(ctx context.Context, client *redlock.Client, jobs []string, run func(ctx context.Context, job string, fence uint64) error) error {
	errs := make([]error, len(jobs))
	var all sync.WaitGroup
	for i, job := range jobs {
		all.Go(func() {
			errs[i] = client.Do(ctx, job, time.Second, func(ctx context.Context) error {
				fence, _ := redlock.FenceFrom(ctx)
				return run(ctx, job, fence)
			})
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// EtcdJobs is the same by etcd: the revision of the store is the token. One lease serves all locks.
func EtcdJobs(ctx context.Context, client *clientv3.Client, jobs []string, run func(ctx context.Context, job string, fence int64) error) error {
	session, err := concurrency.NewSession(client, concurrency.WithTTL(10))
	if err != nil {
		return err
	}
	defer session.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(session.Ctx(), cancel)()
	errs := make([]error, len(jobs))
	var all sync.WaitGroup
	for i, job := range jobs {
		all.Go(func() {
			mutex := concurrency.NewMutex(session, job)
			if errs[i] = mutex.Lock(ctx); errs[i] == nil {
				errs[i] = errors.Join(run(ctx, job, mutex.Header().Revision), mutex.Unlock(ctx))
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
