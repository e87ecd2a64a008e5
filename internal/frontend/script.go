package frontend

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redlock-go/redlock/internal/grants"
	"github.com/redlock-go/redlock/internal/luascript"
	"github.com/redlock-go/redlock/internal/session"
)

func (c *conn) script(args []string, r *session.Reply) session.Plan {
	switch sub := strings.ToUpper(args[1]); {
	case sub == "LOAD" && len(args) == 3:
		if script, err := c.parse(args[2]); err != nil {
			c.fail(r, "", err)
		} else {
			r.Bulk(script.Name())
		}
	case sub == "EXISTS" && len(args) > 2:
		r.Array(len(args) - 2)
		for _, name := range args[2:] {
			r.Bool(c.server.scripts.get(strings.ToLower(name)) != nil)
		}
	case sub == "FLUSH": // a script is a name for what it does, and is not forgotten
		r.OK()
	default:
		r.Error("ERR unknown subcommand '" + args[1] + "'. Try SCRIPT HELP.")
	}
	return session.Plan{}
}

// parse returns the script with a text, and notes that this connection knows it.
func (c *conn) parse(text string) (*stored, error) {
	script, err := c.server.scripts.add(text)
	if err != nil {
		c.refused(err, text)
		return nil, err
	}
	c.used = c.server.scripts.use(c.used, script.Name(), script)
	return script, nil
}

// refused notes that a script was refused.
func (c *conn) refused(err error, text string) {
	c.server.stats.RefusedScripts.Add(1)
	c.server.cfg.Logger.Debug("redlock: a script was refused", "reason", err, "text", text)
}

// eval is EVAL and EVALSHA.
func (c *conn) eval(args []string, r *session.Reply) session.Plan {
	n, err := strconv.Atoi(args[2])
	switch {
	case err != nil:
		err = errNotInteger
	case n < 0:
		err = refusal("Number of keys can't be negative")
	case n > len(args)-3:
		err = refusal("Number of keys can't be greater than number of args")
	case n == 0:
		err = refusal("a lock script needs its key in KEYS")
	}
	var script *stored
	if err == nil {
		if len(args[0]) == len("EVALSHA") {
			name := strings.ToLower(args[1])
			if script = c.server.scripts.get(name); script == nil {
				r.Error("NOSCRIPT No matching script. Please use EVAL.")
				return session.Plan{}
			}
			c.used = c.server.scripts.use(c.used, name, script)
		} else {
			script, err = c.parse(args[1])
		}
	}
	if err != nil {
		c.fail(r, "", err)
		return session.Plan{}
	}
	keys, argv := args[3:3+n], args[3+n:]
	plan, err := script.Classify(bytesOf(keys), bytesOf(argv), time.Now())
	if err != nil {
		c.refused(err, "")
		c.fail(r, keys[0], err)
		return session.Plan{}
	}
	c.server.stats.Scripts[plan.Class].Add(1)
	if err := c.allow(&plan); err != nil {
		c.fail(r, keys[0], err)
		return session.Plan{}
	}
	db := c.db
	if plan.DB >= 0 {
		db = plan.DB
	}
	call := call{conn: c, plan: plan, value: string(plan.Token)}
	for _, key := range plan.Keys {
		call.keys = append(call.keys, c.nodeKeyIn(db, string(key)))
	}
	slices.Sort(call.keys) // two calls that want the same keys ask for them in the same order
	// Of several keys the first orders the command among those of its connection.
	return session.Plan{Key: call.keys[0], Run: func(ctx context.Context, r *session.Reply) func() {
		undo, err := call.run(ctx, r)
		if err != nil {
			c.fail(r, call.keys[0], err)
		}
		return undo
	}}
}

func bytesOf(texts []string) [][]byte {
	all := make([][]byte, len(texts))
	for i, text := range texts {
		all[i] = []byte(text)
	}
	return all
}

// allow refuses calls that this server does not make.
func (c *conn) allow(plan *luascript.Plan) error {
	forced := plan.Class == luascript.ForceRelease || plan.Class == luascript.ForceExtend
	switch {
	case forced && !c.server.cfg.Force:
		return refusal("this script changes the lock of any owner; start the server with -force to allow that")
	case len(plan.Keys) == 0:
		return refusal("the script names no key")
	case len(plan.Token) > grants.MaxValue:
		return refusal("value has " + strconv.Itoa(len(plan.Token)) + " bytes, at most " + strconv.Itoa(grants.MaxValue) + " are allowed")
	case plan.DB >= databases:
		return refusal("DB index is out of range")
	}
	for _, key := range plan.Keys {
		if err := checkKey(c.nodeKeyIn(databases-1, string(key))); err != nil {
			return err
		}
	}
	return nil
}

// call is one call of a script.
type call struct {
	conn  *conn
	plan  luascript.Plan
	keys  []string // at the nodes
	value string   // that the script compares with, or writes
}

// run makes the call that the script stands for, and answers what the script does in the world that
// this call has found.
func (l *call) run(ctx context.Context, r *session.Reply) (undo func(), err error) {
	store, p := l.conn.server.grants, &l.plan
	owner := grants.By(l.value)
	if p.Class == luascript.ForceRelease || p.Class == luascript.ForceExtend {
		owner = grants.Anyone
	}
	row := &p.Owned
	switch p.Class {
	case luascript.Query:
		if row, err = l.world(ctx); err != nil {
			return nil, err
		}
	case luascript.Acquire:
		row, undo, err = l.acquire(ctx)
	case luascript.AcquireOrRenew:
		if row, err = l.each(func(key string) (grants.Outcome, error) {
			return l.extend(ctx, key, owner, p.Owned.TTL)
		}); err == nil && row == &p.Absent {
			row, undo, err = l.acquire(ctx)
		}
	case luascript.Release, luascript.ForceRelease:
		row, err = l.each(func(key string) (grants.Outcome, error) { return store.Release(ctx, key, owner) })
	case luascript.Extend, luascript.ForceExtend:
		row, err = l.each(func(key string) (grants.Outcome, error) { return l.extend(ctx, key, owner, p.Owned.TTL) })
	}
	if err != nil {
		return undo, err
	}
	return undo, l.answer(ctx, r, &row.Reply)
}

// each makes a change to each key. The row is that of the worst outcome.
func (l *call) each(change func(key string) (grants.Outcome, error)) (*luascript.Row, error) {
	worst := grants.Done
	for _, key := range l.keys {
		outcome, err := change(key)
		if err != nil {
			return nil, err
		}
		worst = max(worst, outcome)
	}
	return [...]*luascript.Row{grants.Done: &l.plan.Owned, grants.Absent: &l.plan.Absent, grants.Other: &l.plan.Other}[worst], nil
}

func (l *call) extend(ctx context.Context, key string, owner grants.Owner, ttl luascript.TTL) (grants.Outcome, error) {
	if ttl.None {
		return grants.Other, grants.ErrNoTTL
	}
	return l.conn.server.grants.Extend(ctx, key, owner, grants.TTL{
		Value: time.Duration(ttl.Milliseconds) * time.Millisecond, Rest: ttl.Rest, Longer: ttl.Longer,
	})
}

// acquire acquires all keys or none.
func (l *call) acquire(ctx context.Context) (row *luascript.Row, undo func(), err error) {
	var got []*grants.Grant
	undo = func() {
		for _, g := range got {
			g.Drop()
		}
	}
	ttl := l.plan.Absent.TTL
	for _, key := range l.keys {
		g, err := l.conn.grant(ctx, key, l.value, time.Duration(ttl.Milliseconds)*time.Millisecond, !ttl.None)
		if err != nil || g == nil {
			undo()
			if err != nil {
				return nil, nil, err
			}
			row, err := l.taken(ctx)
			return row, nil, err
		}
		got = append(got, g)
	}
	return &l.plan.Absent, undo, nil
}

// taken is the row of an attempt that was refused. The script's owner may be who holds the lock.
func (l *call) taken(ctx context.Context) (*luascript.Row, error) {
	if sameReply(&l.plan.Owned.Reply, &l.plan.Other.Reply) {
		return &l.plan.Other, nil
	}
	row, err := l.world(ctx)
	if row == &l.plan.Absent { // it was taken when it was asked for
		row = &l.plan.Other
	}
	return row, err
}

func sameReply(a, b *luascript.Reply) bool {
	return a.Kind == b.Kind && a.Int == b.Int && string(a.Text) == string(b.Text) && len(a.Items) == 0 && len(b.Items) == 0
}

// world is the row of what a quorum has at the first key that is not the owner's.
func (l *call) world(ctx context.Context) (*luascript.Row, error) {
	return l.each(func(key string) (grants.Outcome, error) {
		seen, err := l.conn.server.grants.Look(ctx, key)
		switch {
		case !seen.Held:
			return grants.Absent, err
		case seen.Value != l.value:
			return grants.Other, err
		}
		return grants.Done, err
	})
}

// answer writes the reply of a row. What it shows of the lock is read once.
func (l *call) answer(ctx context.Context, r *session.Reply, reply *luascript.Reply) error {
	var seen grants.State
	var looked bool
	var write func(reply *luascript.Reply) error
	write = func(reply *luascript.Reply) (err error) {
		if reply.Kind >= luascript.Value && !looked {
			looked = true
			if seen, err = l.conn.server.grants.Look(ctx, l.keys[0]); err != nil {
				return err
			}
		}
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
				if err := write(&reply.Items[i]); err != nil {
					return err
				}
			}
		case luascript.Value:
			showValue(seen, r)
		case luascript.PTTL:
			r.Int(ttlOf(seen, time.Millisecond) + reply.Int)
		case luascript.TTLSeconds:
			r.Int(ttlOf(seen, time.Second) + reply.Int)
		}
		return nil
	}
	return write(reply)
}
