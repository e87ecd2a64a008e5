package fakeredis

import (
	"bytes"
	"slices"

	said "github.com/redlock-go/redlock/internal/command"
)

// The scripts that the server knows, as indexes of Server.scripts.
const (
	release = iota
	extend
	scripts
)

// digests are the names of the scripts for EVALSHA.
var digests = [scripts]string{release: said.ReleaseSHA1, extend: said.ExtendSHA1}

// acts are the commands with which the scripts change a key, for the access
// list.
var acts = [scripts]string{release: "del", extend: "pexpire"}

const errForeign = "ERR fakeredis runs no Lua: it knows the release and the extend script only"

// scriptOf finds a script by its text, or -1.
func scriptOf(text []byte) int {
	switch string(text) {
	case said.ReleaseScript:
		return release
	case said.ExtendScript:
		return extend
	}
	return -1
}

// digestOf finds a script by its digest, in any case, or -1.
func digestOf(sha []byte) int {
	for which, digest := range digests {
		if string(sha) == digest {
			return which
		}
	}
	for which, digest := range digests {
		if len(sha) == len(digest) && string(bytes.ToLower(sha)) == digest {
			return which
		}
	}
	return -1
}

// cmdEval loads the script as well, as Redis does.
func (c *conn) cmdEval(args [][]byte) {
	keys, argv, ok := c.scriptArgs(args)
	if !ok {
		return
	}
	which := scriptOf(args[1])
	if which < 0 {
		c.fail(errForeign)
		return
	}
	c.srv.scripts[which] = true
	c.runScript(which, keys, argv)
}

func (c *conn) cmdEvalSHA(args [][]byte) {
	keys, argv, ok := c.scriptArgs(args)
	if !ok {
		return
	}
	which := digestOf(args[1])
	if which < 0 || !c.srv.scripts[which] {
		c.fail(c.srv.dialect.noScript)
		return
	}
	c.runScript(which, keys, argv)
}

// scriptArgs splits what follows the script into keys and other arguments.
func (c *conn) scriptArgs(args [][]byte) (keys, argv [][]byte, ok bool) {
	n, isInt := parseInt(args[2])
	rest := args[3:]
	switch {
	case !isInt:
		c.fail(errNotInteger)
	case n > int64(len(rest)):
		c.fail("ERR Number of keys can't be greater than number of args")
	case n < 0:
		c.fail("ERR Number of keys can't be negative")
	default:
		return rest[:n], rest[n:], true
	}
	return nil, nil, false
}

// runScript does what a script does. Both read all keys before they change
// any, which shows where a key is named twice. As in Redis, what a script did
// before an error stays done.
func (c *conn) runScript(which int, keys, argv [][]byte) {
	s := c.srv
	if len(keys) == 0 {
		c.scriptError(which, s.dialect.noKeys)
		return
	}
	if s.denied["mget"] {
		c.scriptError(which, s.accessError(s.dialect.noScriptAccess, "mget"))
		return
	}
	c.compare(keys, argv)
	if s.denied[acts[which]] && slices.Contains(c.held, true) {
		c.scriptError(which, s.accessError(s.dialect.noScriptAccess, acts[which]))
		return
	}
	if s.replica && slices.Contains(c.held, true) {
		c.scriptError(which, errReadOnly)
		return
	}
	start := len(c.out)
	c.array(len(keys))
	for i, key := range keys {
		if c.held[i] {
			if which == release {
				c.table().del(key, c.now)
			} else if text := c.extend(i, key, argv[min(len(keys), len(argv)):]); text != "" {
				c.out = c.out[:start]
				c.scriptError(which, text)
				return
			}
		}
		c.bool(c.held[i])
	}
}

// compare finds out which keys hold the tokens at the same places. A key of a
// foreign type holds none.
func (c *conn) compare(keys, tokens [][]byte) {
	c.held = c.held[:0]
	for i, key := range keys {
		e := c.table().get(key, c.now)
		c.held = append(c.held, e != nil && e.kind == stringKind &&
			i < len(tokens) && bytes.Equal(e.value(), tokens[i]))
	}
}

// extend sets the time to live of the key at place i, and says what is wrong
// with it.
func (c *conn) extend(i int, key []byte, ttls [][]byte) (text string) {
	if i >= len(ttls) {
		return c.srv.dialect.notString
	}
	c.held[i], text = c.pexpire(key, ttls[i])
	return text
}

// scriptError answers an error that arose inside a script.
func (c *conn) scriptError(which int, text string) {
	text += " script: "
	if c.srv.dialect.scriptsByIDs {
		text += digests[which] + ", "
	}
	c.fail(text + "on @user_script:1.")
}

func (c *conn) cmdScript(args [][]byte) {
	switch sub := args[1]; {
	case is(sub, "LOAD"):
		c.scriptLoad(args)
	case is(sub, "EXISTS"):
		c.scriptExists(args)
	case is(sub, "FLUSH"):
		c.scriptFlush(args)
	default:
		c.unknownSubcommand("SCRIPT", sub)
	}
}

func (c *conn) scriptLoad(args [][]byte) {
	if len(args) != 3 {
		c.wrongArity("script|load")
		return
	}
	which := scriptOf(args[2])
	if which < 0 {
		c.fail(errForeign)
		return
	}
	c.srv.scripts[which] = true
	c.text(digests[which])
}

func (c *conn) scriptExists(args [][]byte) {
	if len(args) < 3 {
		c.wrongArity("script|exists")
		return
	}
	c.array(len(args) - 2)
	for _, sha := range args[2:] {
		which := digestOf(sha)
		c.bool(which >= 0 && c.srv.scripts[which])
	}
}

func (c *conn) scriptFlush(args [][]byte) {
	if !flushOptions(args[1:]) {
		c.fail("ERR SCRIPT FLUSH only support SYNC|ASYNC option")
		return
	}
	c.srv.scripts = [scripts]bool{}
	c.ok()
}

func (c *conn) unknownSubcommand(container string, sub []byte) {
	c.fail("ERR unknown subcommand '" + string(sub[:min(len(sub), 128)]) + "'. Try " + container + " HELP.")
}
