// Clients are lock clients of several libraries and languages, as their users write them, run against
// one address that they take for a Redis: that of redlock serve. The test of this package runs them.
//
// Each language has one program with the same arguments; this is that of Go:
//
//	client LIBRARY ADDRESS cycle KEY                  acquire, refuse, extend, release, expire; prints ok
//	client LIBRARY ADDRESS contend KEY FILE SECONDS   holds the lock again and again; prints counts as JSON
//
// A holder creates FILE, which must not exist, and removes it: that is how an overlap shows between
// programs that have nothing in common.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"time"

	bsm "github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	redsyncgoredis "github.com/go-redsync/redsync/v4/redis/goredis/v9"
	redsyncredigo "github.com/go-redsync/redsync/v4/redis/redigo"
	"github.com/gomodule/redigo/redis"
	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"github.com/redlock-go/redlock"
)

// library acquires by a lock library. It returns no lock if that is taken.
type library func(ctx context.Context, key string, ttl time.Duration) (held, error)

// held is a lock that was acquired. extend is nil where the library extends by itself.
type held struct {
	extend  func(ctx context.Context, ttl time.Duration) error
	release func(ctx context.Context) error
}

func (h held) isNone() bool { return h.release == nil }

// none is the answer to an attempt that has failed, where err may be that of a lock that is taken.
func none(err, taken error) (held, error) {
	if errors.Is(err, taken) {
		err = nil
	}
	return held{}, err
}

var libraries = map[string]func(address string) (library, error){
	"redsync-goredis": func(address string) (library, error) {
		return byRedsync(redsyncgoredis.NewPool(goredis.NewClient(&goredis.Options{Addr: address}))), nil
	},
	"redsync-redigo": func(address string) (library, error) {
		return byRedsync(redsyncredigo.NewPool(&redis.Pool{DialContext: func(ctx context.Context) (redis.Conn, error) {
			return redis.DialContext(ctx, "tcp", address, redis.DialDatabase(0))
		}})), nil
	},
	"redislock": func(address string) (library, error) {
		client := bsm.New(goredis.NewClient(&goredis.Options{Addr: address}))
		return func(ctx context.Context, key string, ttl time.Duration) (held, error) {
			l, err := client.Obtain(ctx, key, ttl, nil)
			if err != nil {
				return none(err, bsm.ErrNotObtained)
			}
			return held{func(ctx context.Context, ttl time.Duration) error { return l.Refresh(ctx, ttl, nil) }, l.Release}, nil
		}, nil
	},
	"rueidislock": func(address string) (library, error) {
		locker, err := rueidislock.NewLocker(rueidislock.LockerOption{
			ClientOption: rueidis.ClientOption{InitAddress: []string{address}, DisableCache: true},
			KeyMajority:  1, KeyValidity: 3 * time.Second, NoLoopTracking: true, TryNextAfter: time.Second,
		})
		return func(ctx context.Context, key string, _ time.Duration) (held, error) {
			_, cancel, err := locker.TryWithContext(ctx, key)
			if err != nil {
				return none(err, rueidislock.ErrNotLocked)
			}
			return held{nil, func(context.Context) error { cancel(); return nil }}, nil
		}, err
	},
	// The library itself, straight at the masters: ADDRESS is a list.
	"redlock": func(address string) (library, error) {
		client, err := redlock.New(redlock.Config{Nodes: strings.Split(address, ",")})
		return func(ctx context.Context, key string, ttl time.Duration) (held, error) {
			l, err := client.TryAcquire(ctx, key, ttl)
			if err != nil {
				return none(err, redlock.ErrTaken)
			}
			return held{l.Extend, l.Release}, nil
		}, err
	},
}

func byRedsync(pool redsyncredis.Pool) library {
	locks := redsync.New(pool)
	return func(ctx context.Context, key string, ttl time.Duration) (held, error) {
		m := locks.NewMutex(key, redsync.WithExpiry(ttl), redsync.WithTries(1))
		if err := m.TryLockContext(ctx); err != nil {
			var taken *redsync.ErrTaken
			if errors.As(err, &taken) {
				err = nil
			}
			return held{}, err
		}
		return held{
			func(ctx context.Context, _ time.Duration) error { return done(m.ExtendContext(ctx)) },
			func(ctx context.Context) error { return done(m.UnlockContext(ctx)) },
		}, nil
	}
}

func done(ok bool, err error) error {
	if err == nil && !ok {
		return errors.New("refused")
	}
	return err
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 4 || libraries[args[0]] == nil {
		return errors.New("client LIBRARY ADDRESS cycle KEY | contend KEY FILE SECONDS")
	}
	connect := func() (library, error) { return libraries[args[0]](args[1]) }
	if args[2] == "cycle" {
		return cycle(connect, args[3])
	}
	seconds, err := strconv.Atoi(args[5])
	if err != nil {
		return err
	}
	l, err := connect()
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(contend(l, args[3], args[4], time.Duration(seconds)*time.Second))
}

func cycle(connect func() (library, error), key string) error {
	ctx := context.Background()
	a, err := connect()
	if err != nil {
		return err
	}
	b, err := connect()
	if err != nil {
		return err
	}
	first, err := a(ctx, key, 3*time.Second)
	if err != nil || first.isNone() {
		return fmt.Errorf("acquire: %v", err)
	}
	if h, err := b(ctx, key, 3*time.Second); err != nil || !h.isNone() {
		return fmt.Errorf("acquire of a taken lock: %v", err)
	}
	if first.extend != nil {
		if err := first.extend(ctx, 4*time.Second); err != nil {
			return fmt.Errorf("extend: %w", err)
		}
	}
	if err := first.release(ctx); err != nil {
		return fmt.Errorf("release: %w", err)
	}
	second, err := b(ctx, key, 400*time.Millisecond)
	if err != nil || second.isNone() {
		return fmt.Errorf("acquire after the release: %v", err)
	}
	if first.extend == nil { // it would be kept alive
		if err := second.release(ctx); err != nil {
			return err
		}
	}
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		last, err := a(ctx, key, 3*time.Second)
		if err == nil && !last.isNone() {
			fmt.Println("ok")
			return last.release(ctx)
		}
		if err != nil || time.Since(began) > 5*time.Second {
			return fmt.Errorf("it does not expire: %v", err)
		}
	}
}

// counts is what contend prints.
type counts struct {
	Grants   int `json:"grants"`
	Overlaps int `json:"overlaps"`
	Errors   int `json:"errors"`
}

func contend(l library, key, file string, d time.Duration) (c counts) {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Duration(2+rand.IntN(8)) * time.Millisecond) {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		began := time.Now()
		h, err := l(ctx, key, 2*time.Second)
		if err == nil && !h.isNone() {
			if time.Since(began) < time.Second {
				c.Grants++
				c.Overlaps += hold(file)
			}
			err = h.release(ctx)
		}
		if err != nil {
			c.Errors++
		}
		cancel()
	}
	return c
}

// hold returns 1 if another holds.
func hold(file string) int {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 1
	}
	_ = f.Close()
	time.Sleep(2 * time.Millisecond)
	if os.Remove(file) != nil {
		return 1
	}
	return 0
}
