package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	redsyncpool "github.com/go-redsync/redsync/v4/redis"
	redsyncgoredis "github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/realredis"
)

// A program that moves to redlock runs for a while beside copies of itself that still
// use another library. These tests show, on real servers, for which libraries and
// keys each of the two is refused what the other holds. The README describes what
// they show.

// ttl is longer than any test: no lock ends by itself.
const ttl = 10 * time.Minute

// patience bounds what should take no time: this machine may be busy.
const patience = time.Minute

// attempt is one try for a lock. It returns what gives the lock back, or nil if
// another holder has it.
type attempt func() (release func())

// servers starts n masters and returns their addresses.
func servers(t *testing.T, n int) (addrs []string) {
	for _, s := range realredis.StartN(t, n) {
		addrs = append(addrs, s.Addr())
	}
	return addrs
}

// ours is an attempt of redlock, with a client that has all nodes.
func ours(t *testing.T, nodes []string, key string) attempt {
	client, err := redlock.New(redlock.Config{Nodes: nodes, NodeTimeout: patience})
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return func() func() {
		lock, err := client.TryAcquire(t.Context(), key, ttl)
		if errors.Is(err, redlock.ErrTaken) {
			return nil
		}
		require.NoError(t, err)
		return func() { // not only held, but held in full: the other has changed nothing
			require.NoError(t, lock.Extend(t.Context(), ttl))
			require.NoError(t, lock.Release(t.Context()))
		}
	}
}

func goRedis(t *testing.T, addr string) *redis.Client {
	client := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// viaRedsync is an attempt of redsync.
func viaRedsync(t *testing.T, nodes []string, name string) attempt {
	var pools []redsyncpool.Pool
	for _, addr := range nodes {
		pools = append(pools, redsyncgoredis.NewPool(goRedis(t, addr)))
	}
	mutex := redsync.New(pools...).NewMutex(name, redsync.WithExpiry(ttl))
	return func() func() {
		err := mutex.TryLockContext(t.Context())
		var taken *redsync.ErrTaken
		if errors.As(err, &taken) {
			return nil
		}
		require.NoError(t, err)
		return func() {
			extended, err := mutex.ExtendContext(t.Context())
			require.NoError(t, err)
			require.True(t, extended)
			released, err := mutex.UnlockContext(t.Context())
			require.NoError(t, err)
			require.True(t, released)
		}
	}
}

// viaRedislock is an attempt of redislock, which locks on one server.
func viaRedislock(t *testing.T, addr, key string) attempt {
	client := redislock.New(goRedis(t, addr))
	return func() func() {
		lock, err := client.Obtain(t.Context(), key, ttl, nil)
		if errors.Is(err, redislock.ErrNotObtained) {
			return nil
		}
		require.NoError(t, err)
		return func() {
			require.NoError(t, lock.Refresh(t.Context(), ttl, nil))
			require.NoError(t, lock.Release(t.Context()))
		}
	}
}

// newRueidislock is a locker of rueidislock, which locks on one server by a majority
// of 2*majority-1 keys there.
func newRueidislock(t *testing.T, addr string, majority int32) rueidislock.Locker {
	locker, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: rueidis.ClientOption{InitAddress: []string{addr}, ForceSingleClient: true},
		KeyMajority:  majority,
		KeyValidity:  ttl,
		TryNextAfter: patience,
	})
	require.NoError(t, err)
	t.Cleanup(locker.Close)
	return locker
}

// viaRueidislock is an attempt of rueidislock.
func viaRueidislock(t *testing.T, addr, name string, majority int32) attempt {
	locker := newRueidislock(t, addr, majority)
	return func() func() {
		held, release, err := locker.TryWithContext(t.Context(), name)
		if errors.Is(err, rueidislock.ErrNotLocked) {
			return nil
		}
		require.NoError(t, err)
		return func() {
			require.NoError(t, held.Err(), "the lock was lost")
			release() // returns when the keys are deleted
		}
	}
}

// acquire repeats an attempt until it succeeds: redlock returns from a release when a
// majority has answered, so the others may still have the key for a moment.
func acquire(t *testing.T, try attempt) (release func()) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if release := try(); release != nil {
			return release
		}
	}
	require.FailNow(t, "the lock is free, and is not granted")
	return nil
}

// forget deletes a key at one server, once it is there.
func forget(t *testing.T, addr, key string) {
	t.Helper()
	admin := goRedis(t, addr)
	require.Eventually(t, func() bool { return admin.Del(t.Context(), key).Val() == 1 }, patience, time.Millisecond)
}

// requireExclusion shows that each of two is refused what the other holds, has it
// once it is given back, and that the refused attempt did the holder no harm.
func requireExclusion(t *testing.T, one, other attempt) {
	t.Helper()
	for _, pair := range [][2]attempt{{one, other}, {other, one}} {
		release := acquire(t, pair[0])
		require.Nil(t, pair[1](), "two hold the lock")
		release()
		acquire(t, pair[1])()
	}
}

// requireOverlap shows that other is granted what holder holds.
func requireOverlap(t *testing.T, holder, other attempt) {
	t.Helper()
	first := acquire(t, holder)
	second := acquire(t, other)
	second()
	first()
}

// TestRedsyncRespectsUs: the same name on the same nodes. Two keys that went missing
// on two of five nodes change nothing, since either library wants a majority.
func TestRedsyncRespectsUs(t *testing.T) {
	nodes := servers(t, 5)
	requireExclusion(t, ours(t, nodes, "orders:42"), viaRedsync(t, nodes, "orders:42"))

	backwards := slices.Clone(nodes) // the order does not matter
	slices.Reverse(backwards)
	us, them := ours(t, nodes, "orders:43"), viaRedsync(t, backwards, "orders:43")
	for _, pair := range [][2]attempt{{us, them}, {them, us}} {
		release := acquire(t, pair[0])
		forget(t, nodes[0], "orders:43")
		forget(t, nodes[1], "orders:43")
		require.Nil(t, pair[1]())
		release()
	}
}

// TestRedislockRespectsUs: the same key, as long as our only node is its server.
func TestRedislockRespectsUs(t *testing.T) {
	nodes := servers(t, 3)
	const key = "orders:42"
	them := viaRedislock(t, nodes[0], key)
	requireExclusion(t, ours(t, nodes[:1], key), them)
	requireOverlap(t, them, ours(t, nodes, key)) // two other nodes are a majority
}

// TestRueidislockRespectsUs: its keys have a prefix and a number. Of one key it is
// exclusive; of three, the default, only while it has not lost the first.
func TestRueidislockRespectsUs(t *testing.T) {
	nodes := servers(t, 1)
	const name, first, second = "orders:42", "rueidislock:0:orders:42", "rueidislock:1:orders:42"
	requireExclusion(t, ours(t, nodes, first), viaRueidislock(t, nodes[0], name, 1))
	requireOverlap(t, ours(t, nodes, name), viaRueidislock(t, nodes[0], name, 1)) // another key

	const byDefault = 2
	them := viaRueidislock(t, nodes[0], name, byDefault)
	us := ours(t, nodes, first)
	requireExclusion(t, us, them)

	release := acquire(t, them)
	// It returns when it has two keys, and takes the third in the background.
	admin := goRedis(t, nodes[0])
	require.Eventually(t, func() bool {
		return admin.Exists(t.Context(), first, second, "rueidislock:2:"+name).Val() == 3
	}, patience, time.Millisecond)
	forget(t, nodes[0], first)
	free := acquire(t, us) // it holds the lock by the other two
	require.Nil(t, ours(t, nodes, second)(), "two keys of the three share one with the other two")
	free()
	release()
}

// TestRueidislockHearsOfOurRelease: a call that waits there is woken by it.
func TestRueidislockHearsOfOurRelease(t *testing.T) {
	nodes := servers(t, 1)
	release := acquire(t, ours(t, nodes, "rueidislock:0:orders:42"))
	admin := goRedis(t, nodes[0])
	locker := newRueidislock(t, nodes[0], 1)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	got := make(chan error, 1)
	go func() {
		_, unlock, err := locker.WithContext(ctx, "orders:42")
		if err == nil {
			unlock()
		}
		got <- err
	}()
	require.Eventually(t, func() bool { // it has asked: of the two, it alone sends EVAL
		return strings.Contains(admin.Info(t.Context(), "commandstats").Val(), "cmdstat_eval:")
	}, patience, time.Millisecond)
	require.Empty(t, got, "it did not wait")
	release()
	require.NoError(t, <-got)
}

// TestNodesAreAddedOneByOne: clients with n nodes and with one more exclude each
// other, since their majorities share a node. From one node to three they do not.
func TestNodesAreAddedOneByOne(t *testing.T) {
	const key = "orders:42"
	nodes := servers(t, 5)
	for n := 1; n < len(nodes); n++ {
		requireExclusion(t, ours(t, nodes[:n], key), ours(t, nodes[:n+1], key))
	}
	requireOverlap(t, ours(t, nodes[:1], key), ours(t, nodes[:3], key))
}
