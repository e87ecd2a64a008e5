package fakeredis

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
