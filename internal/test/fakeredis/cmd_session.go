package fakeredis

const (
	errNoAuth     = "NOAUTH Authentication required."
	errWrongPass  = "WRONGPASS invalid username-password pair or user is disabled."
	errNoPassword = "ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?"
	errClientName = "ERR Client names cannot contain spaces, newlines or special characters."
)

// session is the state set by a connection for itself.
type session struct {
	proto  int
	authed bool
	quit   bool
	trackingMode
}

// reset resets a session to that of a new connection.
func (s *session) reset(o *Options) {
	*s = session{proto: 2, authed: o.Password == ""}
}

func (c *conn) cmdPing(args [][]byte) {
	switch len(args) {
	case 1:
		c.simple("PONG")
	case 2:
		c.bulk(args[1])
	default:
		c.wrongArity("ping")
	}
}

func (c *conn) cmdQuit([][]byte) {
	c.quit = true
	c.ok()
}

// cmdSelect knows one database.
func (c *conn) cmdSelect(args [][]byte) {
	if string(args[1]) == "0" {
		c.ok()
	} else {
		c.fail("ERR DB index is out of range")
	}
}

func (c *conn) cmdAuth(args [][]byte) {
	user, password := defaultUser, args[1]
	switch {
	case len(args) > 3:
		c.fail(errSyntax)
		return
	case len(args) == 3:
		user, password = string(args[1]), args[2]
	case c.srv.opts.Password == "":
		c.fail(errNoPassword)
		return
	}
	if c.login(user, string(password)) {
		c.ok()
	}
}

// login lets a user in, or answers why not. A logged-in connection stays so.
func (c *conn) login(user, password string) bool {
	if !c.srv.credentials(user, password) {
		c.fail(errWrongPass)
		return false
	}
	c.authed = true
	return true
}

// cmdHello answers like a real server down to the order of its complaints,
// because clients send the whole handshake in one HELLO.
func (c *conn) cmdHello(args [][]byte) {
	proto := int64(c.proto)
	var login, name [][]byte
	if len(args) > 1 {
		var ok bool
		proto, ok = parseInt(args[1])
		if !ok {
			c.fail("ERR Protocol version is not an integer or out of range")
			return
		}
		if proto != 2 && proto != 3 {
			c.fail("NOPROTO unsupported protocol version")
			return
		}
		args = args[2:]
	} else {
		args = nil
	}
	for len(args) > 0 {
		switch {
		case is(args[0], "AUTH") && len(args) > 2:
			login, args = args[1:3], args[3:]
		case is(args[0], "SETNAME") && len(args) > 1:
			name, args = args[1:2], args[2:]
		default:
			c.fail("ERR Syntax error in HELLO option '" + string(args[0]) + "'")
			return
		}
	}
	if login != nil && !c.login(string(login[0]), string(login[1])) {
		return
	}
	if name != nil && !validName(name[0]) {
		c.fail(errClientName)
		return
	}
	if !c.authed {
		c.fail(c.srv.dialect.noAuth)
		return
	}
	c.proto = int(proto)
	c.welcome()
}

// welcome is the reply to HELLO.
func (c *conn) welcome() {
	d := c.srv.dialect
	c.dict(7)
	c.text("server")
	c.text(d.product)
	c.text("version")
	c.text(d.version)
	c.text("proto")
	c.int(int64(c.proto))
	c.text("id")
	c.int(c.id)
	c.text("mode")
	c.text("standalone")
	c.text("role")
	if c.srv.replica {
		c.text("replica")
	} else {
		c.text("master")
	}
	c.text("modules")
	c.array(len(d.modules))
	for _, m := range d.modules {
		c.dict(4)
		c.text("name")
		c.text(m.name)
		c.text("ver")
		c.int(1)
		c.text("path")
		c.text(m.path)
		c.text("args")
		c.array(0)
	}
}

// validName reports whether every character is a printable one and no space.
func validName(name []byte) bool {
	for _, b := range name {
		if b < '!' || b > '~' {
			return false
		}
	}
	return true
}

// clientSubcommands are those of CLIENT. Their arity counts all words; negative: at least so many.
var clientSubcommands = []struct {
	name  string
	arity int
	newer bool // not in Redis 7.0
	run   func(c *conn, args [][]byte)
}{
	{"SETNAME", 3, false, (*conn).clientSetName},
	{"SETINFO", 4, true, (*conn).clientSetInfo},
	{"TRACKING", -3, false, (*conn).clientTracking},
	{"CACHING", 3, false, (*conn).clientCaching},
}

func (c *conn) cmdClient(args [][]byte) {
	for _, sub := range clientSubcommands {
		if !is(args[1], sub.name) || sub.newer && !c.srv.dialect.clientInfo {
			continue
		}
		if len(args) != sub.arity && (sub.arity > 0 || len(args) < -sub.arity) {
			c.wrongArity(subcommand("client", args))
			return
		}
		sub.run(c, args)
		return
	}
	c.unknownSubcommand("CLIENT", args[1])
}

// clientSetName checks the name, and keeps nothing: no command shows it.
func (c *conn) clientSetName(args [][]byte) {
	if validName(args[2]) {
		c.ok()
	} else {
		c.fail(errClientName)
	}
}

// clientSetInfo takes any value.
func (c *conn) clientSetInfo(args [][]byte) {
	if is(args[2], "LIB-NAME") || is(args[2], "LIB-VER") {
		c.ok()
	} else {
		c.fail("ERR Unrecognized option '" + string(args[2]) + "'")
	}
}
