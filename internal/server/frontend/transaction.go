package frontend

import (
	"context"
	"strings"

	"github.com/redlock-go/redlock/internal/server/grants"
	"github.com/redlock-go/redlock/internal/server/session"
)

// transaction has the WATCH, MULTI and EXEC of a connection, for clients that compare and change in this way if there
// is no script. A transaction is one change of its one watched lock.
//
// WATCH notes the lock shown by a quorum: its token is fresh for each grant, so a lock with the
// same token was not released since. EXEC makes the change to this lock and to no other.
type transaction struct {
	key     string // the watched one, at the nodes
	seen    grants.State
	open    bool // after MULTI
	spoiled bool // a command was refused after MULTI
	change  *change

	before, after int // commands UNWATCH, before and behind the change
}

// maxUnwatches bounds these: each has a reply.
const maxUnwatches = 16

// spoil makes EXEC refuse the transaction, if one is open.
func (t *transaction) spoil() { t.spoiled = t.open }

// inTransaction holds the commands executed after MULTI, not queued.
var inTransaction = map[string]bool{"EXEC": true, "DISCARD": true, "MULTI": true, "WATCH": true, "QUIT": true, "RESET": true}

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

func (c *conn) multi(_ []string, r *session.Reply) session.Plan {
	if c.tx.open {
		r.Error("ERR MULTI calls can not be nested")
	} else {
		c.tx.open = true
		r.OK()
	}
	return session.Plan{}
}

// discard is DISCARD, and UNWATCH outside of a MULTI.
func (c *conn) discard(args []string, r *session.Reply) session.Plan {
	if strings.EqualFold(args[0], "DISCARD") && !c.tx.open {
		r.Error("ERR DISCARD without MULTI")
	} else {
		c.tx = transaction{}
		r.OK()
	}
	return session.Plan{}
}

// queue takes a command into the transaction, or refuses it.
func (c *conn) queue(args []string, r *session.Reply) session.Plan {
	if strings.EqualFold(args[0], "UNWATCH") && len(args) == 1 && c.tx.before+c.tx.after < maxUnwatches {
		if c.tx.change == nil { // without an effect, as in Redis: EXEC unwatches
			c.tx.before++
		} else {
			c.tx.after++
		}
		r.Simple("QUEUED")
		return session.Plan{}
	}
	ch, err := readChange(append(args, "")[:max(len(args), 2)])
	switch {
	case c.tx.key == "":
		err = refusal("this server only holds locks: MULTI needs a WATCH of the lock before it")
	case err != nil:
	case c.tx.change != nil:
		err = refusal("this server takes one command in a MULTI")
	case c.nodeKey(ch.key) != c.tx.key:
		err = refusal("in a MULTI the command is about the key that is watched")
	case ch.owner != grants.Anyone && ch.value != c.tx.seen.Value:
		err = refusal("in a MULTI the command needs the value of the lock that is watched")
	}
	if err != nil {
		c.tx.spoil()
		c.fail(r, "", err)
	} else {
		c.tx.change = &ch
		r.Simple("QUEUED")
	}
	return session.Plan{}
}

func (c *conn) exec(_ []string, r *session.Reply) session.Plan {
	tx := c.tx
	c.tx = transaction{}
	switch {
	case !tx.open:
		r.Error("ERR EXEC without MULTI")
	case tx.spoiled:
		r.Error("EXECABORT Transaction discarded because of previous errors.")
	case tx.change == nil:
		r.Array(tx.before)
		for range tx.before {
			r.OK()
		}
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

// execute makes the change to the lock seen before. If there was none, and still is none, it changes nothing.
func (c *conn) execute(ctx context.Context, tx *transaction, r *session.Reply) (err error) {
	outcome, now := grants.Absent, grants.State{}
	if tx.seen.Held {
		outcome, err = c.server.grants.Extend(ctx, tx.key, grants.Of(tx.seen), tx.change.ttl)
	} else {
		now, err = c.server.grants.Look(ctx, tx.key)
	}
	switch {
	case err != nil:
		return err
	case now.Held || tx.seen.Held && (outcome == grants.Absent || outcome == grants.Other):
		r.NilArray() // another lock, or none
	default:
		r.Array(tx.before + 1 + tx.after)
		for range tx.before {
			r.OK()
		}
		tx.change.answer(outcome == grants.Done, r)
		for range tx.after {
			r.OK()
		}
	}
	return nil
}
