package frontend

import (
	"context"
	"math"
	"strings"
	"time"

	"github.com/redlock-go/redlock/internal/server/grants"
	"github.com/redlock-go/redlock/internal/server/session"
)

// change is an extension or a release of one lock, by one of many commands.
type change struct {
	key    string // by the client's name
	owner  grants.Owner
	value  string     // of the owner
	ttl    grants.TTL // 0 or less: a release
	shares bool       // the client's share may be the target
	answer func(isDone bool, r *session.Reply)
}

// Answers of commands about one change: 1 or 0, and OK or nil.
func asBool(isDone bool, r *session.Reply) { r.Bool(isDone) }

func asStatus(isDone bool, r *session.Reply) {
	if isDone {
		r.OK()
	} else {
		r.Nil()
	}
}

// readChange reads a command to extend or release one lock.
func readChange(args []string) (ch change, err error) {
	ch = change{key: args[1], owner: grants.Anyone, answer: asBool}
	by := func(value string) { ch.owner, ch.value = grants.By(value), value }
	switch strings.ToUpper(args[0]) {
	case "SET":
		return readSetting(args)
	case "SETEX", "PSETEX":
		err = refusal("this server only holds locks: use SET with NX in place of " + args[0])
	case "EXPIRE", "PEXPIRE":
		ch.ttl, err = readExpire(args)
	case "DELEX", "DELIFEQ":
		by(args[len(args)-1])
		if len(args) == 4 && !strings.EqualFold(args[2], "IFEQ") {
			err = refusal("this server only holds locks: DELEX needs IFEQ")
		}
	case "RL.UNLOCK":
		by(args[2])
		ch.shares = true
	case "RL.EXTEND":
		by(args[2])
		ch.shares = true
		if ch.ttl.Value, err = readMilliseconds(args[3]); ch.ttl.Value == 0 {
			err = errNotInteger
		}
		ch.answer = func(isDone bool, r *session.Reply) {
			if isDone {
				r.Int(ch.ttl.Value.Milliseconds())
			} else {
				r.Nil()
			}
		}
	case "DEL", "UNLINK":
		if len(args) > 2 {
			err = refusal("this server does not run " + args[0] + " of several keys in a MULTI")
		}
	default:
		err = refusal("this server does not run " + args[0] + " in a MULTI: DEL, UNLINK, EXPIRE, PEXPIRE and SET XX are allowed")
	}
	return ch, err
}

// readSetting reads a SET that extends a lock.
func readSetting(args []string) (ch change, err error) {
	s, err := readSet(args[3:])
	ch = change{key: args[1], owner: grants.By(args[2]), value: args[2], ttl: grants.TTL{Value: s.ttl}, answer: asStatus}
	switch {
	case err != nil:
	case s.otherwise != "":
		err = refusal("this server only holds locks: SET with " + s.otherwise + " has no meaning here")
	case !s.nx && !s.xx && s.ifEqual == nil:
		err = refusal("this server only holds locks, and keeps no data: SET needs NX and an expiry, as in SET key value NX PX 30000; use a Redis for the rest")
	case s.nx:
		err = refusal("in a MULTI SET may only extend the lock: it needs XX, PX and the same value")
	case s.get:
		err = refusal("this server only holds locks: SET with GET needs NX")
	case !s.hasTTL:
		err = refusal("this server only holds locks: SET with XX or IFEQ extends one, and needs PX or EX")
	case s.ifEqual != nil && *s.ifEqual != args[2]:
		err = refusal("this server only holds locks: SET with IFEQ extends one, and cannot change its value")
	}
	return ch, err
}

// change plans a command to extend or release one lock.
func (c *conn) change(args []string, r *session.Reply) session.Plan {
	ch, err := readChange(args)
	if err != nil {
		c.fail(r, args[1], err)
		return session.Plan{}
	}
	return c.on(ch.key, func(ctx context.Context, key string, r *session.Reply) (*grants.Grant, error) {
		if ch.owner == grants.Anyone {
			c.ownerless(args[0], key)
		}
		outcome, isShare, err := grants.Absent, false, error(nil)
		if ch.shares {
			outcome, isShare, err = c.server.grants.ExtendShare(ctx, key, ch.value, ch.ttl.Value)
		}
		if !isShare {
			outcome, err = c.server.grants.Extend(ctx, key, ch.owner, ch.ttl)
		}
		ch.answer(outcome == grants.Done, r)
		return nil, err
	})
}

// ownerless logs a change to the lock of any owner.
func (c *conn) ownerless(name, key string) {
	c.server.cfg.Logger.Debug("redlock: a command without an owner", "command", name, "key", key)
}

// readExpire reads the TTL of EXPIRE and PEXPIRE. A TTL of 0 or less deletes.
func readExpire(args []string) (ttl grants.TTL, err error) {
	scale := scaleOf(args[0])
	n, err := integer(args[2])
	switch {
	case err != nil:
		return ttl, err
	case n > math.MaxInt64/int64(scale) || n < -math.MaxInt64/int64(scale):
		return ttl, refusal("invalid expire time in '" + strings.ToLower(args[0]) + "' command")
	case len(args) == 4:
		ttl.If = grants.Conditions[strings.ToUpper(args[3])]
		if ttl.If == nil {
			return ttl, refusal("Unsupported option " + args[3])
		}
	}
	ttl.Value = time.Duration(n) * scale
	return ttl, nil
}

// scaleOf returns the unit of a command or an option: a P at the beginning means milliseconds.
func scaleOf(name string) time.Duration {
	if name[0]|0x20 == 'p' {
		return time.Millisecond
	}
	return time.Second
}
