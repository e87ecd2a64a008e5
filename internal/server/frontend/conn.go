package frontend

import (
	"context"
	"fmt"
	"net"
	"regexp"
	"strings"
	"sync/atomic"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/server/grants"
	"github.com/redlock-go/redlock/internal/server/session"
)

// conn is the state of one connection. It implements session.Commands.
type conn struct {
	server  *Server
	id      int64
	addr    string // of its client; "" behind a socket of the file system
	resp3   bool
	db      int
	name    string
	allowed bool // it has logged in, or need not
	user    string
	prefix  string
	holder  atomic.Pointer[string] // shown beside the locks of the connection

	tx   transaction
	kept []kept // by RL.LOCK … KEEP

	keeping grants.Quota // of these, and of those without an expiry

	channels map[string]bool // its subscriptions
	push     session.Push
}

func newConn(s *Server, id int64, addr net.Addr, push session.Push) *conn {
	c := &conn{server: s, id: id, push: push}
	if addr != nil && addr.Network() == "tcp" {
		c.addr = addr.String()
	}
	c.reset()
	return c
}

// reset sets the state of a new connection.
func (c *conn) reset() {
	c.unsubscribeAll()
	c.resp3, c.db, c.name, c.allowed, c.user, c.prefix = false, 0, "", c.server.users.Load() == nil, "", ""
	c.tx = transaction{}
	c.identify()
}

// identify notes the client for operators: its user, its name, its address and its server, as far as they are
// known. No value of a lock is a part of it.
func (c *conn) identify() {
	var parts []string
	for _, part := range []string{c.user, c.name, c.addr} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	text := strings.Join(parts, "/")
	if c.server.cfg.Name != "" {
		text += "@" + c.server.cfg.Name
	}
	text = strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' || r == '|' {
			return '_'
		}
		return r
	}, text)
	text = text[:min(len(text), maxHolder)]
	c.holder.Store(&text)
}

// maxHolder bounds the text shown for a client.
const maxHolder = 96

// IsStranger implements session.Commands.
func (c *conn) IsStranger() bool { return !c.allowed }

// Gone implements session.Commands.
func (c *conn) Gone() {
	c.unsubscribeAll()
	for _, k := range c.kept {
		k.drop()
	}
}

// command has the properties of a command.
type command struct {
	least, most int  // words, with the name
	early       bool // allowed before AUTH
	plan        func(c *conn, args []string, r *session.Reply) session.Plan
}

// many is a number of arguments bounded by the session.
const many = 1 << 20

var commands map[string]command

func init() {
	commands = map[string]command{
		"HELLO": {1, many, true, (*conn).hello}, "AUTH": {2, 3, true, (*conn).auth}, "QUIT": {1, many, true, (*conn).quit},
		"RESET": {1, 1, true, (*conn).resetCommand}, "PING": {1, 2, false, (*conn).ping}, "ECHO": {2, 2, false, (*conn).echo},
		"SELECT": {2, 2, false, (*conn).selectDB}, "CLIENT": {2, many, false, (*conn).client}, "INFO": {1, many, false, (*conn).info},
		"COMMAND": {1, many, false, (*conn).command}, "CLUSTER": {2, many, false, (*conn).cluster},

		"SET": {3, many, false, (*conn).set}, "SETNX": {3, 3, false, (*conn).setNX}, "PSETEX": {4, 4, false, (*conn).change},
		"SETEX": {4, 4, false, (*conn).change}, "GET": {2, 2, false, (*conn).get}, "EXISTS": {2, many, false, (*conn).exists},
		"PTTL": {2, 2, false, (*conn).ttl}, "TTL": {2, 2, false, (*conn).ttl},
		"DEL": {2, many, false, (*conn).del}, "UNLINK": {2, many, false, (*conn).del}, "GETDEL": {2, 2, false, (*conn).getDel},
		"PEXPIRE": {3, 4, false, (*conn).change}, "EXPIRE": {3, 4, false, (*conn).change},
		"DELEX": {4, 4, false, (*conn).change}, "DELIFEQ": {3, 3, false, (*conn).change},

		"EVAL": {3, many, false, (*conn).eval}, "EVALSHA": {3, many, false, (*conn).eval}, "SCRIPT": {2, many, false, (*conn).script},

		"WATCH": {2, many, false, (*conn).watch}, "UNWATCH": {1, 1, false, (*conn).discard}, "MULTI": {1, 1, false, (*conn).multi},
		"EXEC": {1, 1, false, (*conn).exec}, "DISCARD": {1, 1, false, (*conn).discard},

		"RL.LOCK": {3, 9, false, (*conn).lock}, "RL.EXTEND": {4, 4, false, (*conn).change}, "RL.UNLOCK": {3, 3, false, (*conn).change},
		"RL.FENCE": {3, 3, false, (*conn).fence}, "RL.INSPECT": {2, 2, false, (*conn).inspect}, "RL.HELD": {1, 1, false, (*conn).held}, "RL.WAIT": {3, 3, false, (*conn).wait},
		"BLPOP": {3, 3, false, (*conn).blpop}, "SUBSCRIBE": {2, many, false, (*conn).subscribe}, "UNSUBSCRIBE": {1, many, false, (*conn).unsubscribe},
		"PSUBSCRIBE": {2, many, false, (*conn).patterns},

		// Words of a browser tricked into a request.
		"POST": {1, many, true, (*conn).foreign}, "HOST:": {1, many, true, (*conn).foreign},
	}
}

// Plan implements session.Commands.
func (c *conn) Plan(args []string, r *session.Reply) session.Plan {
	r.SetRESP3(c.resp3)
	name := strings.ToUpper(args[0])
	cmd, known := commands[name]
	switch {
	case !c.allowed && !cmd.early:
		r.Error("NOAUTH Authentication required.")
	case !known:
		c.server.stats.Unknown.Add(1)
		c.tx.spoil()
		r.Error(fmt.Sprintf("ERR unknown command '%.128s': this server only holds locks", args[0])) // clients read the first words
	case c.prefix == everything && !cmd.early && !looks[name]:
		c.tx.spoil()
		r.Error("NOPERM this user only looks: EXISTS, TTL, PTTL, RL.INSPECT and RL.HELD, at keys as the nodes have them")
	case c.prefix != everything && name == "RL.HELD":
		c.tx.spoil()
		r.Error("NOPERM RL.HELD shows the locks of all users: it is for a user whose prefix is " + everything)
	case len(args) < cmd.least || len(args) > cmd.most:
		c.tx.spoil()
		r.Error("ERR wrong number of arguments for '" + strings.ToLower(args[0]) + "' command")
	case c.isSubscribed() && !inSubscription[name]:
		r.Error("ERR Can't execute '" + strings.ToLower(name) + "': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context")
	case c.tx.open && !inTransaction[name]:
		return c.queue(args, r)
	default:
		return cmd.plan(c, args, r)
	}
	return session.Plan{}
}

// nodeKey returns the key at the nodes, with a user's prefix and the database.
func (c *conn) nodeKey(key string) string {
	if c.prefix == everything {
		return key
	}
	return nodeKey(c.prefix, c.db, key)
}

// nodeKey puts a mark before the keys of all databases but 0, and before keys of database 0 that begin with such a
// mark.
func nodeKey(prefix string, db int, key string) string {
	if db > 0 || databaseMark.MatchString(key) {
		key = fmt.Sprintf("db%d:%s", db, key)
	}
	return prefix + key
}

var databaseMark = regexp.MustCompile(`^db[0-9]+:`)

// on plans a command on the lock of one key. f returns a grant to release if its client does not receive the reply.
// Commands are ordered by the client's own name of the key, since a script may select another database.
func (c *conn) on(name string, f func(ctx context.Context, key string, r *session.Reply) (*grants.Grant, error)) session.Plan {
	key := c.nodeKey(name)
	return session.Plan{Key: name, Run: func(ctx context.Context, r *session.Reply) (undo func()) {
		g, err := f(ctx, key, r)
		if err != nil {
			c.fail(r, key, err)
		}
		if g != nil {
			undo = g.Drop
		}
		return undo
	}}
}

// checkKey refuses a key that is not allowed at the nodes.
func checkKey(key string) error {
	if n := len(key); n == 0 || n > redlock.MaxKey {
		return refusal(fmt.Sprintf("key has %d bytes with its prefix, 1 to %d are allowed", n, redlock.MaxKey))
	}
	return nil
}
