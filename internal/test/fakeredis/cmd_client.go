package fakeredis

// clientSubcommands are those of CLIENT. Their arity counts all words; negative: at least so many.
var clientSubcommands = []struct {
	name  string
	arity int
	newer bool // not in Redis 7.0
	run   func(c *conn, args [][]byte)
}{
	{"ID", 2, false, func(c *conn, _ [][]byte) { c.int(c.id) }},
	{"GETNAME", 2, false, (*conn).clientGetName},
	{"SETNAME", 3, false, (*conn).clientSetName},
	{"SETINFO", 4, true, (*conn).clientSetInfo},
	{"TRACKING", -3, false, (*conn).clientTracking},
	{"CACHING", 3, false, (*conn).clientCaching},
	{"NO-EVICT", 3, false, (*conn).clientSwitch},
	{"NO-TOUCH", 3, true, (*conn).clientSwitch},
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

func (c *conn) clientGetName([][]byte) {
	if c.name == "" {
		c.null()
	} else {
		c.text(c.name)
	}
}

func (c *conn) clientSetName(args [][]byte) {
	if !validName(args[2]) {
		c.fail(errClientName)
		return
	}
	c.name = string(args[2])
	c.ok()
}

func (c *conn) clientSetInfo(args [][]byte) {
	for _, attribute := range []string{"LIB-NAME", "LIB-VER"} {
		if !is(args[2], attribute) {
			continue
		}
		if !validName(args[3]) {
			c.fail("ERR " + attribute + " cannot contain spaces, newlines or special characters.")
			return
		}
		c.ok()
		return
	}
	c.fail("ERR Unrecognized option '" + string(args[2]) + "'")
}

func (c *conn) clientSwitch(args [][]byte) {
	if is(args[2], "ON") || is(args[2], "OFF") {
		c.ok()
	} else {
		c.fail(errSyntax)
	}
}
