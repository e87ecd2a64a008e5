package frontend

import (
	"context"
	"crypto/rand"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/server/grants"
	"github.com/redlock-go/redlock/internal/server/session"
)

// Commands beyond Redis, for clients with needs beyond a single Redis.

// request holds the options of RL.LOCK.
type request struct {
	key, value string
	ttl, wait  time.Duration
	keep       bool
	shared     bool
	holder     string
}

// readLock reads RL.LOCK key ttl-ms [WAIT ms] [VALUE v] [KEEP] [SHARED].
func readLock(args []string) (q request, err error) {
	q.key = args[1]
	if q.ttl, err = readMilliseconds(args[2]); err == nil && q.ttl == 0 {
		err = refusal("invalid expire time in 'rl.lock' command")
	}
	for rest := args[3:]; len(rest) > 0 && err == nil; {
		switch option := strings.ToUpper(rest[0]); {
		case option == "KEEP":
			q.keep, rest = true, rest[1:]
		case option == "SHARED":
			q.shared, rest = true, rest[1:]
		case option == "WAIT" && len(rest) > 1:
			q.wait, err = readMilliseconds(rest[1])
			rest = rest[2:]
		case option == "VALUE" && len(rest) > 1:
			q.value, rest = rest[1], rest[2:]
		default:
			err = errSyntax
		}
	}
	if q.value == "" {
		q.value = rand.Text()
	}
	if len(q.value) > grants.MaxValue {
		err = refusal("VALUE is longer than " + strconv.Itoa(grants.MaxValue) + " bytes")
	}
	return q, err
}

func readMilliseconds(text string) (time.Duration, error) {
	n, err := integer(text)
	if err != nil || n < 0 || n > math.MaxInt64/int64(time.Millisecond) {
		return 0, errNotInteger
	}
	return time.Duration(n) * time.Millisecond, nil
}

// lock is RL.LOCK. It answers with token, validity and fence, or nil: taken, or still taken after the wait.
func (c *conn) lock(args []string, r *session.Reply) session.Plan {
	q, err := readLock(args)
	if err == nil {
		err = checkKey(c.nodeKey(q.key))
	}
	if err != nil {
		c.fail(r, q.key, err)
		return session.Plan{}
	}
	q.holder = *c.holder.Load()
	key := c.nodeKey(q.key)
	return session.Plan{Key: q.key, Run: func(ctx context.Context, r *session.Reply) (undo func()) {
		lock, drop, err := c.acquireOwn(ctx, key, &q)
		switch {
		case errors.Is(err, redlock.ErrTaken) && !errors.Is(err, context.Canceled): // the wait was not in vain, but cut off
			r.Nil()
		case err != nil:
			c.fail(r, key, err)
		default:
			r.Map("token", q.value, "validity-ms", lock.Remaining().Milliseconds(), "fence", int64(lock.Fence()))
		}
		return drop
	}, Alone: q.wait > 0 || q.keep, Waits: q.wait > 0} // KEEP changes the connection's state
}

// acquireOwn acquires the lock. drop gives it back.
func (c *conn) acquireOwn(ctx context.Context, key string, q *request) (lock redlock.Lock, drop func(), err error) {
	options := grants.Options{Wait: q.wait > 0, Holder: q.holder}
	if options.Wait {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, q.wait)
		defer cancel()
	}
	if q.keep {
		options.Keep = &c.keeping
	}
	if q.shared {
		x, failed := c.server.grants.AcquireShared(ctx, key, q.value, q.ttl, options)
		if failed != nil {
			return lock, nil, failed
		}
		lock, drop = x.Lock, x.Drop
	} else {
		g, failed := c.server.grants.AcquireWith(ctx, key, q.value, q.ttl, options)
		if failed != nil {
			return lock, nil, failed
		}
		lock, drop = g.Lock, g.Drop
	}
	if q.keep {
		c.kept = slices.DeleteFunc(c.kept, func(k kept) bool { return k.lock.Remaining() == 0 })
		c.kept = append(c.kept, kept{lock, drop})
	}
	return lock, drop, nil
}

// kept is a lock of RL.LOCK … KEEP.
type kept struct {
	lock redlock.Lock
	drop func()
}

// fence is RL.FENCE key token.
func (c *conn) fence(args []string, r *session.Reply) session.Plan {
	if !c.server.cfg.Fenced {
		c.fail(r, args[1], refusal("there are no fencing tokens: start the server with -fenced"))
		return session.Plan{}
	}
	plan := c.on(args[1], func(_ context.Context, key string, r *session.Reply) (*grants.Grant, error) {
		if n := c.server.grants.Fence(key, args[2]); n != 0 {
			r.Int(int64(n))
		} else {
			r.Nil() // not held, or granted by another front end
		}
		return nil, nil
	})
	plan.Waits = true // it asks no node
	return plan
}

// inspect is RL.INSPECT key.
func (c *conn) inspect(args []string, r *session.Reply) session.Plan {
	return c.on(args[1], func(ctx context.Context, key string, r *session.Reply) (*grants.Grant, error) {
		seen, err := c.server.cfg.Client.Inspect(ctx, key)
		if err != nil {
			return nil, err
		}
		r.Array(len(seen.Nodes))
		for _, n := range seen.Nodes { // the digest, not the value: a value can release its lock
			text := ""
			if n.Err != nil {
				text = n.Err.Error()
			}
			r.Map("node", n.Addr, "holder", n.Holder, "digest", n.Digest, "ttl-ms", n.TTL.Milliseconds(), "error", text)
		}
		return nil, nil
	})
}

// mostShown bounds the locks of RL.HELD and of the page.
const mostShown = 100

// held is RL.HELD: locks that this server has granted, one of many if there are more.
func (c *conn) held(_ []string, r *session.Reply) session.Plan {
	locks := c.server.Held()
	r.Array(len(locks))
	for _, l := range locks {
		r.Map("key", l.Key, "holder", l.Holder, "ttl-ms", l.Left.Milliseconds())
	}
	return session.Plan{}
}

// wait is RL.WAIT key ms: 1 if the lock is free, 0 if the time is over.
func (c *conn) wait(args []string, r *session.Reply) session.Plan {
	most, err := readMilliseconds(args[2])
	if err != nil {
		c.fail(r, args[1], err)
		return session.Plan{}
	}
	return c.waitFor(args[1], most, func(free bool, r *session.Reply) { r.Bool(free) })
}

// signal is the list popped by python-redis-lock to wait for lock:N.
const signal, signalled = "lock-signal:", "lock:"

// blpop waits for a release, as asked for by python-redis-lock.
func (c *conn) blpop(args []string, r *session.Reply) session.Plan {
	name, found := strings.CutPrefix(args[1], signal)
	seconds, err := strconv.ParseFloat(args[2], 64)
	switch {
	case !found:
		c.fail(r, args[1], refusal("this server only holds locks: BLPOP waits for "+signal+"… alone"))
		return session.Plan{}
	case err != nil || !(seconds >= 0 && seconds <= math.MaxInt64/1e9/2): // it may be NaN
		r.Error("ERR timeout is not a float or out of range")
		return session.Plan{}
	}
	return c.waitFor(signalled+name, time.Duration(math.Ceil(seconds*1000))*time.Millisecond, func(free bool, r *session.Reply) {
		if free {
			r.List(args[1], "1")
		} else {
			r.NilArray()
		}
	})
}

// waitFor plans a wait for the lock on key; 0 is no limit.
func (c *conn) waitFor(key string, most time.Duration, answer func(free bool, r *session.Reply)) session.Plan {
	key = c.nodeKey(key)
	return session.Plan{Alone: true, Waits: true, Run: func(ctx context.Context, r *session.Reply) func() {
		if most > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, most)
			defer cancel()
		}
		free, err := c.server.grants.Wait(ctx, key)
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			c.fail(r, key, err)
			return nil
		}
		answer(free, r)
		return nil
	}}
}
