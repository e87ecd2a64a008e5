package frontend

import (
	"strconv"
	"strings"

	"github.com/redlock-go/redlock/internal/server/session"
)

// version is the version of Redis claimed by the server. It makes clients use SET IFEQ and DELEX.
const version = "8.4.0"

// databases is the number of databases for SELECT. Each is a prefix of keys.
const databases = 16

// maxName bounds the name of a connection, kept until its end.
const maxName = 512

func (c *conn) hello(args []string, r *session.Reply) session.Plan {
	resp3, name, rest := c.resp3, c.name, args[1:]
	if len(rest) > 0 {
		switch rest[0] {
		case "2", "3":
			resp3 = rest[0] == "3"
		default:
			if _, err := strconv.Atoi(rest[0]); err != nil {
				r.Error("ERR Protocol version is not an integer or out of range")
			} else {
				r.Error("NOPROTO unsupported protocol version")
			}
			return session.Plan{}
		}
		rest = rest[1:]
	}
	for len(rest) > 0 {
		switch option := strings.ToUpper(rest[0]); {
		case option == "AUTH" && len(rest) >= 3:
			if !c.login(rest[1], rest[2], r) {
				return session.Plan{}
			}
			rest = rest[3:]
		case option == "SETNAME" && len(rest) >= 2 && len(rest[1]) <= maxName:
			name, rest = rest[1], rest[2:]
		default:
			r.Error("ERR Syntax error in HELLO option '" + rest[0] + "'")
			return session.Plan{}
		}
	}
	if !c.allowed {
		r.Error("NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time")
		return session.Plan{}
	}
	c.resp3, c.name = resp3, name
	c.identify()
	proto := int64(2)
	if resp3 {
		proto = 3
	}
	r.SetRESP3(resp3)
	r.Map("server", "redis", "version", version, "proto", proto, "id", c.id, "mode", "standalone", "role", "master", "modules", []any{})
	return session.Plan{}
}

// login logs a user in, or answers with the reason for a refusal.
func (c *conn) login(name, password string, r *session.Reply) bool {
	users := c.server.users.Load()
	if users == nil && name == "default" {
		return true // as a Redis without a password does
	}
	user, ok := users.check(name, password)
	if !ok {
		c.server.stats.BadPassword.Add(1)
		r.Error("WRONGPASS invalid username-password pair or user is disabled.")
		return false
	}
	if user.Prefix != c.prefix {
		c.unsubscribeAll() // these are another user's channels
	}
	c.allowed, c.user, c.prefix = true, name, user.Prefix
	c.identify()
	return true
}

func (c *conn) auth(args []string, r *session.Reply) session.Plan {
	name, password := "default", args[len(args)-1]
	if len(args) == 3 {
		name = args[1]
	} else if c.server.users.Load() == nil {
		r.Error("ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?")
		return session.Plan{}
	}
	if c.login(name, password, r) {
		r.OK()
	}
	return session.Plan{}
}

func (c *conn) quit(_ []string, r *session.Reply) session.Plan {
	r.OK()
	return session.Plan{Close: true}
}

// foreign ends the connection of a program with another protocol.
func (c *conn) foreign(_ []string, r *session.Reply) session.Plan { return session.Plan{Close: true} }

func (c *conn) resetCommand(_ []string, r *session.Reply) session.Plan {
	c.reset()
	r.SetRESP3(false)
	r.Simple("RESET")
	return session.Plan{}
}

func (c *conn) ping(args []string, r *session.Reply) session.Plan {
	if c.isSubscribed() {
		r.List("pong", append(args, "")[1])
	} else if len(args) == 2 {
		r.Bulk(args[1])
	} else {
		r.Simple("PONG")
	}
	return session.Plan{}
}

func (c *conn) echo(args []string, r *session.Reply) session.Plan {
	r.Bulk(args[1])
	return session.Plan{}
}

func (c *conn) selectDB(args []string, r *session.Reply) session.Plan {
	switch n, err := strconv.Atoi(args[1]); {
	case err != nil:
		r.Error("ERR " + string(errNotInteger))
	case n < 0 || n >= databases:
		r.Error("ERR DB index is out of range")
	default:
		c.db = n
		r.OK()
	}
	return session.Plan{}
}

func (c *conn) client(args []string, r *session.Reply) session.Plan {
	switch sub := strings.ToUpper(args[1]); {
	case sub == "SETINFO" && len(args) == 4:
		r.OK()
	case sub == "SETNAME" && len(args) == 3 && len(args[2]) > maxName:
		r.Error("ERR Client names have at most " + strconv.Itoa(maxName) + " bytes here")
	case sub == "SETNAME" && len(args) == 3:
		c.name = args[2]
		c.identify()
		r.OK()
	case sub == "GETNAME" && len(args) == 2:
		if c.name == "" {
			r.Nil()
		} else {
			r.Bulk(c.name)
		}
	case sub == "ID" && len(args) == 2:
		r.Int(c.id)
	default: // also TRACKING and MAINT_NOTIFICATIONS: a client with an OK would wait for pushes
		r.Error("ERR unknown subcommand '" + args[1] + "'. Try CLIENT HELP.")
	}
	return session.Plan{}
}

func (c *conn) info(_ []string, r *session.Reply) session.Plan {
	r.Bulk("# Server\r\nredis_version:" + version + "\r\nredis_mode:standalone\r\nserver_name:redlock\r\n" +
		"# Persistence\r\nloading:0\r\nasync_loading:0\r\n# Replication\r\nrole:master\r\nconnected_slaves:0\r\n# Cluster\r\ncluster_enabled:0\r\n")
	return session.Plan{}
}

// command has no list of commands; clients do without.
func (c *conn) command(args []string, r *session.Reply) session.Plan {
	if len(args) > 1 && strings.EqualFold(args[1], "COUNT") {
		r.Int(int64(len(commands)))
	} else {
		r.Array(0)
	}
	return session.Plan{}
}

func (c *conn) cluster(_ []string, r *session.Reply) session.Plan {
	r.Error("ERR This instance has cluster support disabled")
	return session.Plan{}
}
