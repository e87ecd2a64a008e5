package fakeredis

import "strings"

// command is a command known to the server.
type command struct {
	name  string // in lower case, as Redis writes it in errors
	arity int    // words with the name; negative: at least so many
	run   func(c *conn, args [][]byte)

	flavor Flavor // the only one that has it; Redis7: all have
	open   bool   // answered before AUTH
	reads  bool   // its keys may be tracked
	index  int    // of its counter
}

// commands is filled by init, because COMMAND reads it.
var (
	commands []*command
	byName   map[string]*command
)

func init() {
	commands = []*command{
		{name: "set", arity: -3, run: (*conn).cmdSet},
		{name: "get", arity: 2, run: (*conn).cmdGet, reads: true},
		{name: "getrange", arity: 4, run: (*conn).cmdGetRange, reads: true},
		{name: "del", arity: -2, run: (*conn).cmdDel},
		{name: "exists", arity: -2, run: (*conn).cmdExists, reads: true},
		{name: "pttl", arity: 2, run: (*conn).cmdPTTL, reads: true},
		{name: "pexpiretime", arity: 2, run: (*conn).cmdPExpireTime, reads: true},
		{name: "type", arity: 2, run: (*conn).cmdType, reads: true},
		{name: "delifeq", arity: 3, run: (*conn).cmdDelIfEq, flavor: Valkey9},
		{name: "delex", arity: 4, run: (*conn).cmdDelEx, flavor: Redis84},
		{name: "zrange", arity: -4, run: (*conn).cmdZRange, reads: true},
		{name: "flushall", arity: 1, run: (*conn).cmdFlushAll},

		{name: "eval", arity: -3, run: (*conn).cmdEval},
		{name: "evalsha", arity: -3, run: (*conn).cmdEvalSHA},
		{name: "script", arity: -2, run: (*conn).cmdScript},

		{name: "ping", arity: -1, run: (*conn).cmdPing},
		{name: "select", arity: 2, run: (*conn).cmdSelect},
		{name: "client", arity: -2, run: (*conn).cmdClient},
		{name: "hello", arity: -1, run: (*conn).cmdHello, open: true},
		{name: "auth", arity: -2, run: (*conn).cmdAuth, open: true},
		{name: "quit", arity: -1, run: (*conn).cmdQuit, open: true},

		{name: "info", arity: -1, run: (*conn).cmdInfo},
		{name: "time", arity: 1, run: (*conn).cmdTime},
	}
	byName = make(map[string]*command, len(commands))
	for i, cmd := range commands {
		cmd.index = i
		byName[cmd.name] = cmd
	}
}

// lookup finds a command by its name in any case, or nil. It is on the path of
// every command and allocates nothing.
func lookup(name []byte, f Flavor) *command {
	var lower [16]byte
	if len(name) > len(lower) {
		return nil
	}
	for i, b := range name {
		if 'A' <= b && b <= 'Z' {
			b += 'a' - 'A'
		}
		lower[i] = b
	}
	cmd := byName[string(lower[:len(name)])]
	if cmd == nil || cmd.flavor != Redis7 && cmd.flavor != f {
		return nil
	}
	return cmd
}

// execute runs one command under s.mu and returns how the connection goes on.
func (c *conn) execute(args [][]byte) ending {
	cmd := lookup(args[0], c.srv.opts.Flavor)
	c.srv.tracking.current = c
	how := c.perform(cmd, args)
	c.srv.tracking.current = nil
	if cmd == nil || cmd.name != "client" {
		c.caching = false
	}
	c.writePushes()
	return how
}

// perform answers a command, or applies a fault.
func (c *conn) perform(cmd *command, args [][]byte) ending {
	s := c.srv
	if cmd != nil && !isProbe(args) {
		s.calls[cmd.index]++
	}
	if len(s.faults.rules) > 0 {
		if f := s.faults.match(cmd); f != nil {
			return c.sabotage(f, cmd, args)
		}
	}
	return c.answer(cmd, args)
}

// answer executes a command as a healthy server does.
func (c *conn) answer(cmd *command, args [][]byte) ending {
	s := c.srv
	barred := !c.authed && (cmd == nil || !cmd.open)
	switch {
	case cmd == nil:
		c.fail(unknownCommand(args))
	case cmd.arity > 0 && len(args) != cmd.arity, len(args) < -cmd.arity:
		c.wrongArity(cmd.name)
	case barred:
		c.fail(errNoAuth)
	case len(s.denied) > 0 && s.denies(cmd, args):
		c.fail(s.noPermission(cmd, args))
	case s.prefix != "" && s.deniesKey(cmd, args):
		c.fail(s.dialect.noKeyAccess)
	case s.full && cmd.name == "set":
		c.fail(errFull)
	default:
		cmd.run(c, args)
		if cmd.reads {
			c.remember(keysOf(cmd.name, args[1:]))
		}
	}
	if c.quit {
		return endClose
	}
	return endNot
}

func (c *conn) wrongArity(name string) {
	c.fail("ERR wrong number of arguments for '" + name + "' command")
}

// unknownCommand quotes as much of the command as Redis does.
func unknownCommand(args [][]byte) string {
	const limit = 128
	var b strings.Builder
	b.WriteString("ERR unknown command '")
	b.Write(args[0][:min(len(args[0]), limit)])
	b.WriteString("', with args beginning with: ")
	quoted := 0
	for _, arg := range args[1:] {
		if quoted >= limit {
			break
		}
		arg = arg[:min(len(arg), limit-quoted)]
		b.WriteString("'")
		b.Write(arg)
		b.WriteString("' ")
		quoted += len(arg) + len("'' ")
	}
	return b.String()
}

// is compares a word of a command with another, in any case.
func is(word []byte, other string) bool { return strings.EqualFold(string(word), other) }
