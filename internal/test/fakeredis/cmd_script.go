package fakeredis

import (
	"bytes"
	"slices"

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
	sharedAcquire
	sharedExtend
	sharedRelease
	sharedLook
	fencedSharedAcquire
	fencedSharedExtend
	scripts
)

// texts are the scripts themselves.
var texts = [scripts]string{
	release: said.ReleaseScript, extend: said.ExtendScript, queue: said.QueueScript,
	fenceAcquire: fencing.AcquireScript, fenceExtend: fencing.ExtendScript, fenceMember: fencing.MemberScript,
	sharedAcquire: said.SharedAcquireScript, sharedExtend: said.SharedExtendScript,
	sharedRelease: said.SharedReleaseScript, sharedLook: said.SharedLookScript,
	fencedSharedAcquire: said.FencedSharedAcquireScript, fencedSharedExtend: said.FencedSharedExtendScript,
}

// digests are the names of the scripts for EVALSHA.
var digests = [scripts]string{
	release: said.ReleaseSHA1, extend: said.ExtendSHA1, queue: said.QueueSHA1,
	fenceAcquire: fencing.AcquireSHA1, fenceExtend: fencing.ExtendSHA1, fenceMember: fencing.MemberSHA1,
	sharedAcquire: said.SharedAcquireSHA1, sharedExtend: said.SharedExtendSHA1,
	sharedRelease: said.SharedReleaseSHA1, sharedLook: said.SharedLookSHA1,
	fencedSharedAcquire: said.FencedSharedAcquireSHA1, fencedSharedExtend: said.FencedSharedExtendSHA1,
}

// acts are the commands by which the scripts of plain locks change a key, for the access list.
var acts = [scripts][]string{release: {"del"}, extend: {"pttl", "pexpire"}}

const (
	errForeign = "ERR fakeredis runs no Lua: it knows the scripts of this client only"
	errCall    = "ERR fakeredis takes this script with its own arguments only"
)

// scriptOf finds a script by its text, or -1.
func scriptOf(text []byte) int {
	for which, known := range texts {
		if string(text) == known {
			return which
		}
	}
	return -1
}

// digestOf finds a script by its digest, or -1.
func digestOf(sha []byte) int {
	for which, digest := range digests {
		if string(sha) == digest {
			return which
		}
	}
	return -1
}

// cmdEval loads the script as well, as Redis does.
func (c *conn) cmdEval(args [][]byte) {
	if which := scriptOf(args[1]); which < 0 {
		c.fail(errForeign)
	} else {
		c.srv.scripts[which] = true
		c.runScript(which, args)
	}
}

func (c *conn) cmdEvalSHA(args [][]byte) {
	if which := digestOf(args[1]); which < 0 || !c.srv.scripts[which] {
		c.fail(c.srv.dialect.noScript)
	} else {
		c.runScript(which, args)
	}
}

// takes reports whether a script can be called with so many keys and other arguments. Those of
// fencing may have a known marker behind them.
func takes(which int, keys, argv int64) bool {
	switch which {
	case release:
		return argv == keys || argv == keys+1
	case extend:
		return argv == 2*keys
	case queue:
		return keys == 2 && argv == 7 || keys == 3 && argv == 8
	case fenceAcquire:
		return argv >= 5+(keys-1) || keys == 1 && argv >= 1 // or no key, by a probe
	case fenceExtend:
		return argv >= 1+2*(keys-1)
	case fenceMember:
		return keys == 1 && argv >= 2
	}
	return argv >= 1
}

// runScript runs a script. Those of plain locks read all keys before they change any: this shows
// where a key is named twice.
func (c *conn) runScript(which int, args [][]byte) {
	s := c.srv
	n, ok := parseInt(args[2])
	if rest := int64(len(args) - 3); !ok || n < 1 || n > rest || !takes(which, n, rest-n) {
		c.fail(errCall)
		return
	}
	keys, argv := args[3:3+n], args[3+n:]
	switch {
	case which > fenceMember:
		c.runShared(which, keys, argv)
		return
	case which >= fenceAcquire:
		c.runFence(which, keys, argv)
		return
	case which == queue:
		c.runQueue(keys, argv)
		return
	}
	if s.denied["mget"] {
		c.scriptError(which, s.accessError(s.dialect.noScriptAccess, "mget"))
		return
	}
	c.compare(keys, argv)
	c.remember(keys) // MGET has read all of them
	does := acts[which]
	stays, stay := which == release && n < int64(len(argv)), int64(0)
	if stays {
		does = acts[extend]
		stay, _ = parseInt(argv[n])
	}
	for _, act := range does {
		if s.denied[act] && slices.Contains(c.held, true) {
			c.scriptError(which, s.accessError(s.dialect.noScriptAccess, act))
			return
		}
	}
	all := which == release && !stays && !slices.Contains(c.held, false)
	if !all {
		c.array(len(keys))
	}
	for i, key := range keys {
		if c.held[i] {
			switch {
			case stays:
				c.shorten(key, stay)
			case which == release:
				c.table().del(key, c.now)
			default:
				c.lengthen(key, argv[len(keys)+i])
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
		c.held = append(c.held, e != nil && e.kind == stringKind && bytes.Equal(e.value(), tokens[i]))
	}
}

// scriptError answers an error inside a script, as of its first line.
func (c *conn) scriptError(which int, text string) {
	text += " script: "
	if c.srv.dialect.scriptsByIDs {
		text += digests[which] + ", "
	}
	c.fail(text + "on @user_script:1.")
}

// cmdScript is SCRIPT LOAD.
func (c *conn) cmdScript(args [][]byte) {
	if !is(args[1], "LOAD") || len(args) != 3 {
		c.unknownSubcommand("SCRIPT", args[1])
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

func (c *conn) unknownSubcommand(container string, sub []byte) {
	c.fail("ERR unknown subcommand '" + string(sub[:min(len(sub), 128)]) + "'. Try " + container + " HELP.")
}
