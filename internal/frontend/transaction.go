package frontend

import (
	"context"
	"strings"

	"github.com/redlock-go/redlock/internal/grants"
	"github.com/redlock-go/redlock/internal/session"
)

// transaction is WATCH, MULTI and EXEC of a connection: for clients that compare and change in this
// way where there is no script. A transaction is about the one lock that it watches.
//
// WATCH notes which lock a quorum shows: its token is fresh for each grant, so a lock that still has
// it was not released since. EXEC makes each change to that lock and to no other.
type transaction struct {
	key     string // at the nodes, that is watched
	seen    grants.State
	open    bool // after MULTI
	spoiled bool // a command was refused after MULTI
	queued  [][]string
}

// spoil has EXEC refuse the transaction, if one is open.
func (t *transaction) spoil() { t.spoiled = t.open }

// inTransaction is the commands that are executed after MULTI, and not queued.
var inTransaction = map[string]bool{"EXEC": true, "DISCARD": true, "MULTI": true, "WATCH": true, "QUIT": true, "RESET": true}

// maxQueued bounds the commands of a transaction.
const maxQueued = 16

func (c *conn) watch(args []string, r *session.Reply) session.Plan {
	key := c.nodeKey(args[1])
	switch {
	case c.tx.open:
		r.Error("ERR WATCH inside MULTI is not allowed")
		return session.Plan{}
	case len(args) > 2 || c.tx.key != "" && c.tx.key != key:
		c.fail(r, "", refusal("this server watches one key at a time"))
		return session.Plan{}
	}
	return session.Plan{Alone: true, Run: func(ctx context.Context, r *session.Reply) func() {
		seen, err := c.server.grants.Look(ctx, key)
		if err != nil {
			c.fail(r, key, err)
			return nil
		}
		if c.tx.key == "" { // the first look counts, as in Redis
			c.tx.key, c.tx.seen = key, seen
		}
		r.OK()
		return nil
	}}
}

func (c *conn) unwatch(_ []string, r *session.Reply) session.Plan {
	c.tx = transaction{}
	r.OK()
	return session.Plan{}
}

func (c *conn) multi(_ []string, r *session.Reply) session.Plan {
	if c.tx.open {
		r.Error("ERR MULTI calls can not be nested")
		return session.Plan{}
	}
	c.tx.open = true
	r.OK()
	return session.Plan{}
}

func (c *conn) discard(_ []string, r *session.Reply) session.Plan {
	if !c.tx.open {
		r.Error("ERR DISCARD without MULTI")
		return session.Plan{}
	}
	c.tx = transaction{}
	r.OK()
	return session.Plan{}
}

// queue takes a command into the transaction, or refuses it.
func (c *conn) queue(args []string, r *session.Reply) session.Plan {
	err := c.queueable(args)
	if err != nil {
		c.tx.spoil()
		c.fail(r, "", err)
		return session.Plan{}
	}
	c.tx.queued = append(c.tx.queued, args)
	r.Simple("QUEUED")
	return session.Plan{}
}

func (c *conn) queueable(args []string) error {
	name := strings.ToUpper(args[0])
	switch {
	case c.tx.key == "":
		return refusal("this server only holds locks: MULTI needs a WATCH of the lock before it")
	case len(c.tx.queued) >= maxQueued:
		return refusal("this server takes 16 commands at most in a MULTI")
	}
	switch name {
	case "UNWATCH":
		return nil
	case "DEL", "UNLINK", "GET":
	case "EXPIRE", "PEXPIRE":
		if _, err := readExpire(args); err != nil {
			return err
		}
	case "SET":
		if s, err := readSet(args[3:]); err != nil {
			return err
		} else if !s.xx || !s.hasTTL || s.otherwise != "" || s.get || args[2] != c.tx.seen.Value {
			return refusal("in a MULTI SET may only extend the lock: it needs XX, PX and the same value")
		}
	default:
		return refusal("this server does not run " + name + " in a MULTI: DEL, UNLINK, EXPIRE, PEXPIRE, SET XX, GET and UNWATCH are allowed")
	}
	if c.nodeKey(args[1]) != c.tx.key || (name == "DEL" || name == "UNLINK") && len(args) > 2 {
		return refusal("in a MULTI all commands are about the key that is watched")
	}
	return nil
}

func (c *conn) exec(_ []string, r *session.Reply) session.Plan {
	tx := c.tx
	c.tx = transaction{}
	switch {
	case !tx.open:
		r.Error("ERR EXEC without MULTI")
	case tx.spoiled:
		r.Error("EXECABORT Transaction discarded because of previous errors.")
	case len(tx.queued) == 0:
		r.Array(0)
	default:
		return session.Plan{Alone: true, Run: func(ctx context.Context, r *session.Reply) func() {
			if err := c.execute(ctx, &tx, r); err != nil {
				c.fail(r, tx.key, err)
			}
			return nil
		}}
	}
	return session.Plan{}
}

// execute makes the changes, if the lock is still the one that was seen.
func (c *conn) execute(ctx context.Context, tx *transaction, r *session.Reply) error {
	store := c.server.grants
	now, err := store.Look(ctx, tx.key)
	if err != nil {
		return err
	}
	if !now.IsSame(tx.seen) {
		r.NilArray()
		return nil
	}
	owner, held, changed := grants.Of(tx.seen), now.Held, 0
	r.Array(len(tx.queued))
	for _, args := range tx.queued {
		outcome := grants.Absent
		switch name := strings.ToUpper(args[0]); {
		case name == "GET":
			showValue(grants.State{Held: held, Value: now.Value}, r)
			continue
		case name == "UNWATCH": // EXEC does it anyway
			r.OK()
			continue
		case !held:
		case name == "DEL" || name == "UNLINK":
			outcome, err = store.Release(ctx, tx.key, owner)
			held = false
		case name == "SET":
			s, _ := readSet(args[3:])
			outcome, err = store.Extend(ctx, tx.key, owner, grants.TTL{Value: s.ttl})
		default:
			ttl, _ := readExpire(args)
			outcome, err = store.Extend(ctx, tx.key, owner, ttl)
			held = ttl.Value > 0 || outcome == grants.Unchanged
		}
		switch {
		case err != nil:
			return err
		case tx.seen.Held && outcome != grants.Done && outcome != grants.Unchanged && changed == 0:
			r.Reset() // the lock ended since the look
			r.NilArray()
			return nil
		case strings.EqualFold(args[0], "SET") && outcome == grants.Done:
			r.OK()
		case strings.EqualFold(args[0], "SET"):
			r.Nil()
		default:
			r.Bool(outcome == grants.Done)
		}
		changed++
	}
	return nil
}
