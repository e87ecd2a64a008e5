package fakeredis

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/redlock-go/redlock/internal/rules/fencing"
	said "github.com/redlock-go/redlock/internal/wire/command"
)

// The scripts known to the server, as indexes of Server.scripts.
const (
	release = iota
	extend
	queue
	fenceAcquire
	fenceExtend
	fenceMember
	scripts
)

// texts are the scripts themselves.
var texts = [scripts]string{
	release: said.ReleaseScript, extend: said.ExtendScript, queue: said.QueueScript,
	fenceAcquire: fencing.AcquireScript, fenceExtend: fencing.ExtendScript, fenceMember: fencing.MemberScript,
}

// digests are the names of the scripts for EVALSHA.
var digests = [scripts]string{
	release: said.ReleaseSHA1, extend: said.ExtendSHA1, queue: said.QueueSHA1,
	fenceAcquire: fencing.AcquireSHA1, fenceExtend: fencing.ExtendSHA1, fenceMember: fencing.MemberSHA1,
}

// allScripts is a server with all scripts loaded.
var allScripts = [scripts]bool{release: true, extend: true, queue: true, fenceAcquire: true, fenceExtend: true, fenceMember: true}

// acts are the commands by which the scripts of plain locks change a key, for the access list.
var acts = [scripts][]string{release: {"del"}, extend: {"pttl", "pexpire"}}

const errForeign = "ERR fakeredis runs no Lua: it knows the scripts of this client only"

// scriptOf finds a script by its text, or -1.
func scriptOf(text []byte) int {
	for which, known := range texts {
		if string(text) == known {
			return which
		}
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

// scriptArgs splits the words after the script into keys and other arguments.
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

// runScript runs a script. Those of plain locks read all keys before they change any: this shows
// where a key is named twice. As in Redis, changes before an error stay.
func (c *conn) runScript(which int, keys, argv [][]byte) {
	s := c.srv
	switch {
	case which >= fenceAcquire:
		c.runFence(which, keys, argv)
		return
	case which == queue:
		c.runQueue(keys, argv)
		return
	}
	if len(keys) == 0 {
		c.scriptError(which, 1, s.dialect.noKeys)
		return
	}
	if s.denied["mget"] {
		c.scriptError(which, 1, s.accessError(s.dialect.noScriptAccess, "mget"))
		return
	}
	c.compare(keys, argv)
	c.remember(keys) // MGET has read all of them
	for _, act := range acts[which] {
		if s.denied[act] && slices.Contains(c.held, true) {
			c.scriptError(which, 1, s.accessError(s.dialect.noScriptAccess, act))
			return
		}
	}
	if s.replica && slices.Contains(c.held, true) {
		c.scriptError(which, 1, errReadOnly)
		return
	}
	start := len(c.out)
	all := which == release && !slices.Contains(c.held, false)
	if !all {
		c.array(len(keys))
	}
	for i, key := range keys {
		if c.held[i] {
			if which == release {
				c.table().del(key, c.now)
			} else if text := c.extend(i, key, argv[min(len(keys), len(argv)):]); text != "" {
				c.out = c.out[:start]
				c.scriptError(which, 1, text)
				return
			}
		}
		if !all {
			c.bool(c.held[i])
		}
	}
	if all {
		c.int(int64(len(keys)))
	}
}

// compare finds out which keys hold the tokens at the same places. A key of a foreign type holds
// none.
func (c *conn) compare(keys, tokens [][]byte) {
	c.held = c.held[:0]
	for i, key := range keys {
		e := c.table().get(key, c.now)
		c.held = append(c.held, e != nil && e.kind == stringKind &&
			i < len(tokens) && bytes.Equal(e.value(), tokens[i]))
	}
}

// extend sets the time to live of the key at place i, unless it has longer, and returns an error,
// if any.
func (c *conn) extend(i int, key []byte, ttls [][]byte) (text string) {
	if i >= len(ttls) {
		return c.srv.dialect.notString
	}
	return c.lengthen(key, ttls[i])
}

// scriptError answers an error inside a script, in one of its lines.
func (c *conn) scriptError(which, line int, text string) {
	text += " script: "
	if c.srv.dialect.scriptsByIDs {
		text += digests[which] + ", "
	}
	c.fail(text + "on @user_script:" + strconv.Itoa(line) + ".")
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
