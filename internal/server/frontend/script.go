package frontend

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redlock-go/redlock/internal/server/grants"
	"github.com/redlock-go/redlock/internal/server/luascript"
	"github.com/redlock-go/redlock/internal/server/session"
)

func (c *conn) script(args []string, r *session.Reply) session.Plan {
	switch sub := strings.ToUpper(args[1]); {
	case sub == "LOAD" && len(args) == 3:
		if script, err := c.parse(args[2]); err != nil {
			c.fail(r, "", err)
		} else {
			r.Bulk(script.Name)
		}
	case sub == "EXISTS" && len(args) > 2:
		r.Array(len(args) - 2)
		for _, name := range args[2:] {
			r.Bool(c.server.scripts.get(strings.ToLower(name)) != nil)
		}
	case sub == "FLUSH": // a script is a name for its effect, and is kept
		r.OK()
	default:
		r.Error("ERR unknown subcommand '" + args[1] + "'. Try SCRIPT HELP.")
	}
	return session.Plan{}
}

// parse returns the script with a text.
func (c *conn) parse(text string) (*luascript.Script, error) {
	script, err := c.server.scripts.add(text)
	if err != nil {
		c.refused(err, text)
	}
	return script, err
}

func (c *conn) refused(err error, text string) {
	c.server.stats.RefusedScripts.Add(1)
	c.server.cfg.Logger.Debug("redlock: a script was refused", "reason", err, "text", text)
}

// eval is EVAL and EVALSHA. Run classifies a known script: this takes a deep stack, and the stack
// of Plan belongs to the connection, even while idle.
func (c *conn) eval(args []string, r *session.Reply) session.Plan {
	n, err := integer(args[2])
	switch {
	case err != nil:
	case n < 0:
		err = refusal("Number of keys can't be negative")
	case n > int64(len(args)-3):
		err = refusal("Number of keys can't be greater than number of args")
	case n == 0:
		err = refusal("a lock script needs its key in KEYS")
	}
	var script *luascript.Script
	switch isName := len(args[0]) == len("EVALSHA"); {
	case err != nil:
	case !isName:
		script, err = c.parse(args[1])
	default:
		script = c.server.scripts.get(strings.ToLower(args[1]))
		if script == nil {
			r.Error("NOSCRIPT No matching script. Please use EVAL.")
			return session.Plan{}
		}
	}
	if err != nil {
		c.fail(r, "", err)
		return session.Plan{}
	}
	l := &call{conn: c, db: c.db, prefix: c.prefix, holder: *c.holder.Load()}
	keys := args[3 : 3+n]
	return session.Plan{Key: keys[0], More: keys[1:], Run: func(ctx context.Context, r *session.Reply) (undo func()) {
		err := l.classify(script, args[3:], int(n))
		if err == nil {
			undo, err = l.run(ctx, r)
		}
		if err != nil {
			c.fail(r, keys[0], err)
		}
		return undo
	}}
}

// classify finds out the effect of the call. The first n of args are its keys.
func (l *call) classify(script *luascript.Script, args []string, n int) (err error) {
	c, words := l.conn, make([][]byte, len(args))
	for i, arg := range args {
		words[i] = []byte(arg)
	}
	if l.plan, err = script.Classify(words[:n:n], words[n:], time.Now()); err != nil {
		c.refused(err, "")
		return err
	}
	class, rows := l.plan.Class, &l.plan.Rows
	c.server.stats.Scripts[class].Add(1)
	l.absent, l.owned, l.other = &rows[luascript.Absent], &rows[luascript.Owned], &rows[luascript.Foreign]
	l.value, l.owner = string(l.plan.Token), grants.By(string(l.plan.Token))
	if l.plan.DB >= 0 {
		l.db = l.plan.DB
	}
	for _, key := range l.plan.Keys {
		l.keys = append(l.keys, nodeKey(l.prefix, l.db, string(key)))
	}
	if class == luascript.ForceRelease || class == luascript.ForceExtend {
		l.owner = grants.Anyone
		if !c.server.cfg.Force {
			return refusal("this script changes the lock of any owner; start the server with -force to allow that")
		}
	}
	if l.db >= databases {
		return refusal("DB index is out of range")
	}
	return nil
}

type call struct {
	conn   *conn
	prefix string // of the calling user
	holder string // the client, as operators see it
	db     int
	plan   luascript.Plan
	absent *luascript.Row // of the plan
	owned  *luascript.Row
	other  *luascript.Row
	keys   []string      // at the nodes, in the order of the plan's
	value  string        // compared with, or written, by the script
	owner  grants.Owner  // of the changed locks
	seen   *grants.State // the state by which the row was chosen, if any
}

// errUnsettled is the error of a script that shows another's lock, if that is gone meanwhile. To show nothing could
// mean to the client that it has the lock.
const errUnsettled = refusal("the lock changed hands while the script ran; run it again")

// attempts bounds the tries of an acquire that shows the holder.
const attempts = 3

// run makes the script's call, and answers with the script's reply in the world found by this call.
func (l *call) run(ctx context.Context, r *session.Reply) (undo func(), err error) {
	var row *luascript.Row
	switch l.plan.Class {
	case luascript.Query:
		row, err = l.world(ctx)
	case luascript.Acquire:
		row, undo, err = l.acquire(ctx)
	case luascript.AcquireOrRenew:
		if row, err = l.each(ctx); err == nil && row == l.absent {
			row, undo, err = l.acquire(ctx)
		}
		if err == nil && row == l.owned && l.seen != nil {
			err = errUnsettled // the same value has acquired it meanwhile, and nothing was renewed
		}
	default:
		if l.owned.Reply.Shows() { // the state before: for the changed lock, and no later one
			if row, err = l.world(ctx); err != nil || row == l.absent || row == l.other && l.plan.Token != nil {
				break
			}
			l.owner = grants.Of(*l.seen)
		}
		if row, err = l.each(ctx); err == nil && l.seen != nil && row != l.owned {
			err = errUnsettled
		}
	}
	if err != nil {
		return undo, err
	}
	l.conn.server.channels.publish(l.prefix, row.Messages)
	if err = l.answer(ctx, r, row); err != nil && undo != nil {
		undo() // the client learns of an error, and of no lock
		undo = nil
	}
	return undo, err
}

// each makes the change of the script to all keys at the same time: a TTL counts from the reply. With several keys the
// nodes are first asked for their holdings, since the script may change all or none. The row is the script's row for
// the keys as the change found them: it claims no more than was done.
func (l *call) each(ctx context.Context) (*luascript.Row, error) {
	if len(l.keys) == 1 {
		held, err := l.change(ctx, l.keys[0])
		return &l.plan.Rows[held], err
	}
	holds, err := l.look(ctx)
	if err != nil {
		return nil, err
	}
	_, effects, err := l.plan.In(holds)
	if err != nil {
		return nil, err
	}
	err = together(len(l.keys), func(i int) (err error) {
		if effects[i] != luascript.None {
			holds[i], err = l.change(ctx, l.keys[i])
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	row, _, err := l.plan.In(holds)
	return row, err
}

// holdings is the holding of a key, by outcome.
var holdings = [...]luascript.Holding{
	grants.Done: luascript.Owned, grants.Unchanged: luascript.Owned, grants.Absent: luascript.Absent, grants.Other: luascript.Foreign,
}

// together calls f with 0 to n-1 at the same time, and returns one of the errors.
func together(n int, f func(i int) error) error {
	if n == 1 {
		return f(0)
	}
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = f(i) })
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// change extends or releases the lock on a key, and returns the holding before.
func (l *call) change(ctx context.Context, key string) (luascript.Holding, error) {
	ttl := l.owned.TTL // zero for a release
	if ttl.None {
		return luascript.Foreign, grants.ErrNoTTL
	}
	outcome, err := l.conn.server.grants.Extend(ctx, key, l.owner, grants.TTL{Value: lasting(ttl), Rest: ttl.Rest})
	return holdings[outcome], err
}

func lasting(ttl luascript.TTL) time.Duration {
	return time.Duration(ttl.Milliseconds) * time.Millisecond
}

// acquire acquires all keys or none, and returns the row for this.
func (l *call) acquire(ctx context.Context) (row *luascript.Row, undo func(), err error) {
	for range attempts {
		if undo, err = l.acquireAll(ctx); undo != nil || err != nil {
			return l.absent, undo, err
		}
		if row, err = l.taken(ctx); row != nil || err != nil {
			return row, nil, err
		}
	}
	return nil, nil, errUnsettled
}

// acquireAll makes one attempt. undo is nil if a key is taken.
func (l *call) acquireAll(ctx context.Context) (undo func(), err error) {
	var got []*grants.Grant
	undo = func() {
		for _, g := range got {
			g.Drop()
		}
	}
	ttl := l.absent.TTL
	for _, key := range slices.Sorted(slices.Values(l.keys)) { // in the order of all rivals
		g, err := l.conn.grant(ctx, key, l.value, l.holder, lasting(ttl), !ttl.None)
		if err != nil || g == nil {
			undo()
			return nil, err
		}
		got = append(got, g)
	}
	if len(got) > 1 { // the first was granted some round trips ago
		if err = together(len(got), func(i int) error { return got[i].Renew(ctx, lasting(ttl)) }); err != nil {
			undo()
			return nil, err
		}
	}
	return undo, nil
}

// taken returns the row of a refused attempt. The holder may have the value of the script. The row is nil if the script
// shows the holder, and there is none any more.
func (l *call) taken(ctx context.Context) (*luascript.Row, error) {
	if reflect.DeepEqual(l.owned.Reply, l.other.Reply) && !l.other.Reply.Shows() {
		return l.other, nil
	}
	row, err := l.world(ctx)
	switch {
	case err != nil || row != l.absent:
		return row, err
	case l.other.Reply.Shows():
		return nil, nil
	}
	return l.other, nil // it was taken at the attempt
}

// world is the script's row for the present holdings of a quorum.
func (l *call) world(ctx context.Context) (*luascript.Row, error) {
	holds, err := l.look(ctx)
	if err != nil {
		return nil, err
	}
	row, _, err := l.plan.In(holds)
	return row, err
}

// look returns a quorum's holding of each key.
func (l *call) look(ctx context.Context) ([]luascript.Holding, error) {
	holds := make([]luascript.Holding, len(l.keys))
	return holds, together(len(l.keys), func(i int) error {
		seen, err := l.conn.server.grants.Look(ctx, l.keys[i])
		if len(l.keys) == 1 { // the reply for several keys shows none
			l.seen = &seen
		}
		if seen.Held {
			holds[i] = luascript.Foreign
			if seen.Value == l.value {
				holds[i] = luascript.Owned
			}
		}
		return err
	})
}

// answer writes the reply of a row. It shows the lock by which the row was chosen, and no later one.
func (l *call) answer(ctx context.Context, r *session.Reply, row *luascript.Row) error {
	if row.Reply.Shows() {
		if l.seen == nil {
			seen, err := l.conn.server.grants.Look(ctx, l.keys[0])
			if err != nil {
				return err
			}
			l.seen = &seen
		}
		isOwned := l.seen.Held && l.seen.Value == l.value
		switch named := l.plan.Token != nil; {
		case row == l.other && (!l.seen.Held || named && isOwned) && l.plan.Class != luascript.Query:
			return errUnsettled
		case row == l.owned && named && !isOwned:
			return errUnsettled
		}
	}
	var write func(reply *luascript.Reply)
	write = func(reply *luascript.Reply) {
		switch reply.Kind {
		case luascript.Nil:
			r.Nil()
		case luascript.Int:
			r.Int(reply.Int)
		case luascript.Bulk:
			r.Bulk(string(reply.Text))
		case luascript.Status:
			r.Simple(string(reply.Text))
		case luascript.Error:
			r.Error(string(reply.Text))
		case luascript.Array:
			r.Array(len(reply.Items))
			for i := range reply.Items {
				write(&reply.Items[i])
			}
		case luascript.Value:
			showValue(*l.seen, r)
		case luascript.PTTL:
			r.Int(ttlOf(*l.seen, time.Millisecond) + reply.Int)
		case luascript.TTLSeconds:
			r.Int(ttlOf(*l.seen, time.Second) + reply.Int)
		}
	}
	write(&row.Reply)
	return nil
}
