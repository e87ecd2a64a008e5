package frontend

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/server/grants"
	"github.com/redlock-go/redlock/internal/server/session"
)

// setting holds the options of a SET.
type setting struct {
	nx, xx    bool
	get       bool
	ifEqual   *string
	ttl       time.Duration
	hasTTL    bool
	otherwise string // an option without use for locks
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
			i++
			if i == len(options) {
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

// readTTL reads a time to live: EX in seconds, PX in milliseconds, the other options as times of day. A time of day
// includes the difference between the client's clock and this one.
func readTTL(unit, number, command string) (time.Duration, error) {
	n, err := integer(number)
	if err != nil {
		return 0, err
	}
	scale := scaleOf(unit)
	if n <= 0 || n > math.MaxInt64/int64(scale) {
		return 0, refusal("invalid expire time in '" + command + "' command")
	}
	if strings.HasSuffix(unit, "AT") {
		return time.Until(time.UnixMilli(n * int64(scale/time.Millisecond))), nil
	}
	return time.Duration(n) * scale, nil
}

func (c *conn) set(args []string, r *session.Reply) session.Plan {
	if s, err := readSet(args[3:]); err == nil && s.nx && s.otherwise == "" {
		return c.acquire(args[1], args[2], &s)
	}
	return c.change(args, r)
}

// setNX is SETNX, without an expiry. It answers 1 or 0.
func (c *conn) setNX(args []string, r *session.Reply) session.Plan {
	holder := *c.holder.Load() // now, since a login may come behind
	return c.on(args[1], func(ctx context.Context, key string, r *session.Reply) (*grants.Grant, error) {
		g, err := c.grant(ctx, key, args[2], holder, 0, false)
		r.Bool(g != nil)
		return g, err
	})
}

// acquire plans a SET with NX. With GET it answers the value of the holder, and nil to the new
// holder.
func (c *conn) acquire(key, value string, s *setting) session.Plan {
	holder := *c.holder.Load()
	return c.on(key, func(ctx context.Context, key string, r *session.Reply) (*grants.Grant, error) {
		for range attempts {
			g, err := c.grant(ctx, key, value, holder, s.ttl, s.hasTTL)
			if err != nil || !s.get || g != nil {
				asStatus(g != nil && !s.get, r)
				return g, err
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
func (c *conn) grant(ctx context.Context, key, value, holder string, ttl time.Duration, hasTTL bool) (g *grants.Grant, err error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	if len(value) > grants.MaxValue {
		return nil, refusal(fmt.Sprintf("value has %d bytes, at most %d are allowed", len(value), grants.MaxValue))
	}
	if hasTTL {
		g, err = c.server.grants.AcquireWith(ctx, key, value, ttl, grants.Options{Holder: holder})
	} else {
		g, err = c.server.grants.AcquireForever(ctx, key, value, grants.Options{Holder: holder, Keep: &c.keeping})
	}
	if errors.Is(err, redlock.ErrTaken) {
		return nil, nil
	}
	return g, err
}

// look plans a command that shows a quorum's lock.
func (c *conn) look(key string, show func(seen grants.State, r *session.Reply)) session.Plan {
	return c.on(key, func(ctx context.Context, key string, r *session.Reply) (*grants.Grant, error) {
		seen, err := c.server.grants.Look(ctx, key)
		if err == nil {
			show(seen, r)
		}
		return nil, err
	})
}

func (c *conn) get(args []string, _ *session.Reply) session.Plan { return c.look(args[1], showValue) }

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

// count plans a command on the locks of several keys. It answers with the number of locks for which f holds.
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

func (c *conn) ttl(args []string, _ *session.Reply) session.Plan {
	return c.look(args[1], func(seen grants.State, r *session.Reply) { r.Int(ttlOf(seen, scaleOf(args[0]))) })
}

// ttlOf returns the reply of TTL and PTTL: -2 without a key, -1 without an expiry. Seconds are rounded as in Redis.
func ttlOf(seen grants.State, scale time.Duration) int64 {
	switch {
	case !seen.Held:
		return -2
	case seen.Kept:
		return -1
	}
	return int64(seen.TTL.Round(scale) / scale)
}

func (c *conn) del(args []string, r *session.Reply) session.Plan {
	names := slices.Compact(slices.Sorted(slices.Values(args[1:])))
	return c.count(names, func(ctx context.Context, key string) (bool, error) {
		c.ownerless(args[0], key)
		outcome, err := c.server.grants.Release(ctx, key, grants.Anyone)
		return outcome == grants.Done, err
	})
}

// getDel releases the lock it shows, and no later one.
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
