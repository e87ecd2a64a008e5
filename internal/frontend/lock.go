package frontend

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/grants"
	"github.com/redlock-go/redlock/internal/session"
)

// setting is the options of a SET.
type setting struct {
	nx, xx    bool
	get       bool
	ifEqual   *string
	ttl       time.Duration
	hasTTL    bool
	otherwise string // an option that locks have no use for
}

// readSet reads the options of a SET, in any order and case.
func readSet(options []string) (s setting, err error) {
	for i := 0; i < len(options); i++ {
		switch name := strings.ToUpper(options[i]); name {
		case "NX":
			s.nx = true
		case "XX":
			s.xx = true
		case "EX", "PX", "EXAT", "PXAT", "IFEQ":
			if i++; i == len(options) {
				return s, errSyntax
			}
			if name == "IFEQ" {
				s.ifEqual = &options[i]
				continue
			}
			if s.hasTTL {
				return s, errSyntax
			}
			s.hasTTL = true
			if s.ttl, err = readTTL(name, options[i], "set"); err != nil {
				return s, err
			}
		case "GET":
			s.get = true
		case "KEEPTTL", "IFNE", "IFDEQ", "IFDNE":
			s.otherwise = name
		default:
			return s, errSyntax
		}
	}
	if s.nx && (s.xx || s.ifEqual != nil) {
		return s, errSyntax
	}
	return s, nil
}

// readTTL reads a time to live: EX in seconds, PX in milliseconds, the others as times of day, which
// bring the difference between the client's clock and this one with them.
func readTTL(unit, number, command string) (time.Duration, error) {
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return 0, errNotInteger
	}
	scale := time.Millisecond
	if unit[0] == 'E' {
		scale = time.Second
	}
	if n <= 0 || n > math.MaxInt64/int64(scale) {
		return 0, refusal("invalid expire time in '" + command + "' command")
	}
	if strings.HasSuffix(unit, "AT") {
		return time.Until(time.UnixMilli(n * int64(scale/time.Millisecond))), nil
	}
	return time.Duration(n) * scale, nil
}

func (c *conn) set(args []string, r *session.Reply) session.Plan {
	key, value := args[1], args[2]
	s, err := readSet(args[3:])
	switch {
	case err != nil:
	case s.otherwise != "":
		err = refusal("this server only holds locks: SET with " + s.otherwise + " has no meaning here")
	case !s.nx && !s.xx && s.ifEqual == nil:
		err = refusal("this server only holds locks, and keeps no data: SET needs NX and an expiry, as in SET key value NX PX 30000; use a Redis for the rest")
	case s.nx:
		return c.acquire(key, value, &s)
	case s.get:
		err = refusal("this server only holds locks: SET with GET needs NX")
	case !s.hasTTL:
		err = refusal("this server only holds locks: SET with XX or IFEQ extends one, and needs PX or EX")
	case s.ifEqual != nil && *s.ifEqual != value:
		err = refusal("this server only holds locks: SET with IFEQ extends one, and cannot change its value")
	}
	if err != nil {
		c.fail(r, key, err)
		return session.Plan{}
	}
	return c.on(key, func(ctx context.Context, key string, r *session.Reply) (*grants.Grant, error) {
		outcome, err := c.server.grants.Extend(ctx, key, grants.By(value), grants.TTL{Value: s.ttl})
		if outcome == grants.Done {
			r.OK()
		} else {
			r.Nil()
		}
		return nil, err
	})
}

// setNX is SETNX, which has no expiry, and answers 1 or 0.
func (c *conn) setNX(args []string, r *session.Reply) session.Plan {
	return c.on(args[1], func(ctx context.Context, key string, r *session.Reply) (*grants.Grant, error) {
		g, err := c.grant(ctx, key, args[2], 0, false)
		r.Bool(g != nil)
		return g, err
	})
}

func (c *conn) setEX(args []string, r *session.Reply) session.Plan {
	c.fail(r, args[1], refusal("this server only holds locks: use SET with NX in place of "+args[0]))
	return session.Plan{}
}

// acquire plans a SET with NX. With GET it answers the value of the holder, and nil to the one that has the lock.
func (c *conn) acquire(key, value string, s *setting) session.Plan {
	return c.on(key, func(ctx context.Context, key string, r *session.Reply) (*grants.Grant, error) {
		for range attempts {
			g, err := c.grant(ctx, key, value, s.ttl, s.hasTTL)
			switch {
			case err != nil || !s.get:
				if g != nil {
					r.OK()
				} else {
					r.Nil()
				}
				return g, err
			case g != nil:
				r.Nil()
				return g, nil
			}
			seen, err := c.server.grants.Look(ctx, key)
			if err != nil || seen.Held {
				showValue(seen, r)
				return nil, err
			}
		}
		return nil, errUnsettled
	})
}

// grant makes an attempt. It returns nil without an error if the lock is taken.
func (c *conn) grant(ctx context.Context, key, value string, ttl time.Duration, hasTTL bool) (g *grants.Grant, err error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	if len(value) > grants.MaxValue {
		return nil, refusal(fmt.Sprintf("value has %d bytes, at most %d are allowed", len(value), grants.MaxValue))
	}
	if hasTTL {
		g, err = c.server.grants.Acquire(ctx, key, value, ttl)
	} else {
		g, err = c.server.grants.AcquireForever(ctx, key, value, &c.keeping)
	}
	if errors.Is(err, redlock.ErrTaken) {
		return nil, nil
	}
	return g, err
}

// look plans a command that shows what a quorum has.
func (c *conn) look(key string, show func(seen grants.State, r *session.Reply)) session.Plan {
	return c.on(key, func(ctx context.Context, key string, r *session.Reply) (*grants.Grant, error) {
		seen, err := c.server.grants.Look(ctx, key)
		if err == nil {
			show(seen, r)
		}
		return nil, err
	})
}

// tieBreak is a key that StackExchange.Redis asks each server for.
const tieBreak = "__Booksleeve_TieBreak"

func (c *conn) get(args []string, r *session.Reply) session.Plan {
	if args[1] == tieBreak {
		r.Nil()
		return session.Plan{}
	}
	return c.look(args[1], showValue)
}

func showValue(seen grants.State, r *session.Reply) {
	if seen.Held {
		r.Bulk(seen.Value)
	} else {
		r.Nil()
	}
}

func (c *conn) exists(args []string, r *session.Reply) session.Plan {
	return c.count(args[1:], func(ctx context.Context, key string) (bool, error) {
		seen, err := c.server.grants.Look(ctx, key)
		return seen.Held, err
	})
}

// count plans a command on the locks of several keys, which answers for how many f holds.
func (c *conn) count(names []string, f func(ctx context.Context, key string) (bool, error)) session.Plan {
	keys := make([]string, len(names))
	for i, name := range names {
		keys[i] = c.nodeKey(name)
	}
	return session.Plan{Key: names[0], More: names[1:], Run: func(ctx context.Context, r *session.Reply) func() {
		var n atomic.Int64
		if err := together(len(keys), func(i int) error {
			holds, err := f(ctx, keys[i])
			if holds {
				n.Add(1)
			}
			return err
		}); err != nil {
			c.fail(r, names[0], err)
		} else {
			r.Int(n.Load())
		}
		return nil
	}}
}

func (c *conn) ttl(args []string, r *session.Reply) session.Plan {
	scale := time.Second
	if len(args[0]) == len("PTTL") {
		scale = time.Millisecond
	}
	return c.look(args[1], func(seen grants.State, r *session.Reply) { r.Int(ttlOf(seen, scale)) })
}

// ttlOf is what TTL and PTTL show: -2 without a key, -1 without an expiry. Seconds are rounded as Redis does.
func ttlOf(seen grants.State, scale time.Duration) int64 {
	switch {
	case !seen.Held:
		return -2
	case seen.Kept:
		return -1
	}
	return int64(seen.TTL.Round(scale) / scale)
}

// change plans a release or an extension that is answered by 1 or 0.
func (c *conn) change(key string, f func(ctx context.Context, key string) (grants.Outcome, error)) session.Plan {
	return c.on(key, func(ctx context.Context, key string, r *session.Reply) (*grants.Grant, error) {
		outcome, err := f(ctx, key)
		r.Bool(outcome == grants.Done)
		return nil, err
	})
}

func (c *conn) del(args []string, r *session.Reply) session.Plan {
	names := slices.Compact(slices.Sorted(slices.Values(args[1:])))
	return c.count(names, func(ctx context.Context, key string) (bool, error) {
		c.server.cfg.Logger.Debug("redlock: a command without an owner", "command", args[0], "key", key)
		outcome, err := c.server.grants.Release(ctx, key, grants.Anyone)
		return outcome == grants.Done, err
	})
}

// getDel releases the lock that it shows, and no later one.
func (c *conn) getDel(args []string, r *session.Reply) session.Plan {
	return c.on(args[1], func(ctx context.Context, key string, r *session.Reply) (*grants.Grant, error) {
		seen, err := c.server.grants.Look(ctx, key)
		if err == nil && seen.Held {
			var outcome grants.Outcome
			outcome, err = c.server.grants.Release(ctx, key, grants.Of(seen))
			seen.Held = outcome == grants.Done
		}
		showValue(seen, r)
		return nil, err
	})
}

// delIf is DELEX k IFEQ v and DELIFEQ k v.
func (c *conn) delIf(args []string, r *session.Reply) session.Plan {
	if len(args) == 4 && !strings.EqualFold(args[2], "IFEQ") {
		c.fail(r, args[1], refusal("this server only holds locks: DELEX needs IFEQ"))
		return session.Plan{}
	}
	return c.change(args[1], func(ctx context.Context, key string) (grants.Outcome, error) {
		return c.server.grants.Release(ctx, key, grants.By(args[len(args)-1]))
	})
}

func (c *conn) expire(args []string, r *session.Reply) session.Plan {
	ttl, err := readExpire(args)
	if err != nil {
		c.fail(r, args[1], err)
		return session.Plan{}
	}
	return c.change(args[1], func(ctx context.Context, key string) (grants.Outcome, error) {
		c.server.cfg.Logger.Debug("redlock: a command without an owner", "command", args[0], "key", key)
		return c.server.grants.Extend(ctx, key, grants.Anyone, ttl)
	})
}

var conditions = map[string]grants.Condition{"GT": grants.IfLonger, "LT": grants.IfShorter, "NX": grants.IfNone, "XX": grants.IfAny}

// readExpire reads the TTL of EXPIRE and PEXPIRE. One of no more than 0 deletes.
func readExpire(args []string) (ttl grants.TTL, err error) {
	scale := time.Second
	if len(args[0]) == len("PEXPIRE") {
		scale = time.Millisecond
	}
	n, err := strconv.ParseInt(args[2], 10, 64)
	switch {
	case err != nil:
		return ttl, errNotInteger
	case n > math.MaxInt64/int64(scale) || n < -math.MaxInt64/int64(scale):
		return ttl, refusal("invalid expire time in '" + strings.ToLower(args[0]) + "' command")
	case len(args) == 4:
		known := false
		if ttl.If, known = conditions[strings.ToUpper(args[3])]; !known {
			return ttl, refusal("Unsupported option " + args[3])
		}
	}
	ttl.Value = time.Duration(n) * scale
	return ttl, nil
}
