package frontend

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redlock-go/redlock/internal/grants"
	"github.com/redlock-go/redlock/internal/luascript"
	"github.com/redlock-go/redlock/internal/session"
)

func (c *conn) script(args []string, r *session.Reply) session.Plan {
	switch sub := strings.ToUpper(args[1]); {
	case sub == "LOAD" && len(args) == 3:
		switch script, err := c.parse(args[2]); {
		case err != nil:
			c.fail(r, "", err)
		case c.server.scripts.get(script.Name()) == nil:
			c.fail(r, "", errScripts)
		default:
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
	keys  []string      // at the nodes
	value string        // that the script compares with, or writes
	seen  *grants.State // what the row was chosen by, if it was
}

// errUnsettled is the error of a script that is to show the lock of another, which has gone since.
// To show nothing could mean to the client that it has the lock.
const errUnsettled = refusal("the lock changed hands while the script ran; run it again")

// attempts bounds how often a script acquires that is to show by what it was refused.
const attempts = 3

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
		if err == nil && row == &p.Owned && l.seen != nil {
			err = errUnsettled // the same value has acquired it meanwhile, and nothing was renewed
		}
	case luascript.Release, luascript.ForceRelease:
		row, err = l.each(func(key string) (grants.Outcome, error) { return store.Release(ctx, key, owner) })
	case luascript.Extend, luascript.ForceExtend:
		row, err = l.each(func(key string) (grants.Outcome, error) { return l.extend(ctx, key, owner, p.Owned.TTL) })
	}
	if err != nil {
		return undo, err
	}
	if err = l.answer(ctx, r, row); err != nil && undo != nil {
		undo() // the client learns of an error, and of no lock
		undo = nil
	}
	return undo, err
}

// each makes a change to each key, to all at the same time: a TTL counts from the reply. The row is
// that of the worst outcome.
func (l *call) each(change func(key string) (grants.Outcome, error)) (*luascript.Row, error) {
	outcomes := make([]grants.Outcome, len(l.keys))
	err := together(len(l.keys), func(i int) (err error) {
		outcomes[i], err = change(l.keys[i])
		return err
	})
	if err != nil {
		return nil, err
	}
	rows := [...]*luascript.Row{grants.Done: &l.plan.Owned, grants.Absent: &l.plan.Absent, grants.Other: &l.plan.Other}
	return rows[slices.Max(outcomes)], nil
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

func (l *call) extend(ctx context.Context, key string, owner grants.Owner, ttl luascript.TTL) (grants.Outcome, error) {
	if ttl.None {
		return grants.Other, grants.ErrNoTTL
	}
	return l.conn.server.grants.Extend(ctx, key, owner, grants.TTL{
		Value: time.Duration(ttl.Milliseconds) * time.Millisecond, Rest: ttl.Rest, Longer: ttl.Longer,
	})
}

// acquire acquires all keys or none, and returns the row of that.
func (l *call) acquire(ctx context.Context) (row *luascript.Row, undo func(), err error) {
	for range attempts {
		if undo, err = l.acquireAll(ctx); undo != nil || err != nil {
			return &l.plan.Absent, undo, err
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
	ttl := l.plan.Absent.TTL
	lasting := time.Duration(ttl.Milliseconds) * time.Millisecond
	for _, key := range l.keys {
		g, err := l.conn.grant(ctx, key, l.value, lasting, !ttl.None)
		if err != nil || g == nil {
			undo()
			return nil, err
		}
		got = append(got, g)
	}
	// The first of several keys was granted some round trips ago.
	isLate := func(g *grants.Grant) bool { return !g.Has(lasting) }
	if slices.ContainsFunc(got, isLate) {
		err = together(len(got), func(i int) error { return got[i].Renew(ctx, lasting) })
		if err == nil && slices.ContainsFunc(got, isLate) {
			err = grants.ErrLate
		}
		if err != nil {
			undo()
			return nil, err
		}
	}
	return undo, nil
}

// taken is the row of an attempt that was refused. The holder may have the value of the script. It
// is nil if the script shows the holder, and there is none any more.
func (l *call) taken(ctx context.Context) (*luascript.Row, error) {
	if sameReply(&l.plan.Owned.Reply, &l.plan.Other.Reply) && !shows(&l.plan.Other.Reply) {
		return &l.plan.Other, nil
	}
	row, err := l.world(ctx)
	switch {
	case err != nil || row != &l.plan.Absent:
		return row, err
	case shows(&l.plan.Other.Reply):
		return nil, nil
	}
	return &l.plan.Other, nil // it was taken when it was asked for
}

// shows reports whether a part of a reply is read at the nodes.
func shows(r *luascript.Reply) bool {
	return r.Kind >= luascript.Value || slices.ContainsFunc(r.Items, func(item luascript.Reply) bool { return shows(&item) })
}

func sameReply(a, b *luascript.Reply) bool {
	return a.Kind == b.Kind && a.Int == b.Int && string(a.Text) == string(b.Text) && len(a.Items) == 0 && len(b.Items) == 0
}

// world is the row of what a quorum has at the first key that is not the owner's.
func (l *call) world(ctx context.Context) (*luascript.Row, error) {
	return l.each(func(key string) (grants.Outcome, error) {
		seen, err := l.conn.server.grants.Look(ctx, key)
		if len(l.keys) == 1 { // the reply of several shows none
			l.seen = &seen
		}
		switch {
		case !seen.Held:
			return grants.Absent, err
		case seen.Value != l.value:
			return grants.Other, err
		}
		return grants.Done, err
	})
}

// answer writes the reply of a row. What it shows is of the lock that the row was chosen by, and not
// of another one that is there by now.
func (l *call) answer(ctx context.Context, r *session.Reply, row *luascript.Row) error {
	if shows(&row.Reply) {
		if l.seen == nil {
			seen, err := l.conn.server.grants.Look(ctx, l.keys[0])
			if err != nil {
				return err
			}
			l.seen = &seen
		}
		isOwned := l.seen.Held && l.seen.Value == l.value
		switch named := l.plan.Token != nil; {
		case row == &l.plan.Other && (!l.seen.Held || named && isOwned) && l.plan.Class != luascript.Query:
			return errUnsettled
		case row == &l.plan.Owned && named && row.Effect == luascript.Delete:
			l.seen = &grants.State{Held: true, Value: l.value} // what was there
		case row == &l.plan.Owned && named && !isOwned:
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
