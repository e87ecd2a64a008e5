package engine

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/redlock-go/redlock/internal/command"
	"github.com/redlock-go/redlock/internal/fleet"
	"github.com/redlock-go/redlock/internal/token"
	"github.com/redlock-go/redlock/resp"
)

// sentCommand is one command of a batch as a master understands it.
type sentCommand struct {
	kind    Kind
	load    bool // SCRIPT LOAD of the kind's script
	native  bool // no script call
	keys    []int
	locks   []int
	ttls    []int64
	paid    bool // a release that was owed
	retried bool // after a SCRIPT LOAD of the same batch
	errand  bool // for one node alone, and out of order
	world   *world
}

func (cmd *sentCommand) lockOf(i int) int {
	if i < len(cmd.locks) {
		return cmd.locks[i]
	}
	return 0
}

// blame notes that a master refused the commands for a reason that is theirs.
func (cmd *sentCommand) blame(m *master, locks ...int) {
	for _, lock := range locks {
		cmd.world.check.lock(lock).refused[m.index] = cmd.world.now()
	}
}

// excuse notes that a release did not happen on a master, for a reason that the
// client cannot help: the key ends with its TTL.
func (cmd *sentCommand) excuse(m *master) {
	if cmd.kind == Release {
		for _, lock := range cmd.locks {
			cmd.world.check.lock(lock).excused[m.index] = true
		}
	}
}

// eachCommand calls do with each command in buf: its first word, its kind, and its
// operands, of which SCRIPT LOAD has none.
func eachCommand(buf []byte, do func(verb string, kind Kind, operands []command.Operand)) {
	d := resp.Decoder{Limits: resp.Limits{Elements: 1 << 12}}
	var r command.Reader
	var v resp.Value
	for len(buf) > 0 {
		n, err := d.Decode(buf, &v)
		if err != nil {
			panic(err)
		}
		text := string(buf[:n])
		it := v.Elements()
		it.Next()
		verb, kind := string(it.Value().Bytes), Release
		switch {
		case strings.Contains(text, "\r\nNX\r\n"):
			kind = Acquire
		case verb == "SET", strings.Contains(text, command.ExtendSHA1), strings.Contains(text, command.ExtendScript):
			kind = Extend
		}
		var operands []command.Operand
		if verb != "SCRIPT" {
			operands = r.Read(kind, buf[:n])
		}
		do(verb, kind, operands)
		buf = buf[n:]
	}
}

// parse reads the commands of a batch.
func parse(w *world, b *fleet.Batch) (cmds []sentCommand, err error) {
	eachCommand(b.Buf, func(verb string, kind Kind, operands []command.Operand) {
		cmd := sentCommand{kind: kind, load: verb == "SCRIPT", native: kind != Acquire && verb != "EVALSHA", world: w}
		cmd.retried = len(cmds) > 0 && cmds[len(cmds)-1].load
		for _, o := range operands {
			lock, e := lockOfToken(string(o.Token))
			if e != nil || kind.HasTTL() && o.TTL <= 0 {
				err = fmt.Errorf("%q with TTL %d in %q", o.Token, o.TTL, b.Buf)
			}
			cmd.keys = append(cmd.keys, keyOf(o.Key))
			cmd.locks = append(cmd.locks, lock)
			cmd.ttls = append(cmd.ttls, o.TTL)
		}
		cmds = append(cmds, cmd)
	})
	if len(cmds) != b.Replies {
		err = fmt.Errorf("%d commands, %d replies announced", len(cmds), b.Replies)
	}
	return cmds, err
}

func keyOf(name []byte) int { return int(name[len("key-")] - '0') }

// tokenOf makes the number of a lock its token, so that masters know its
// lock.
func tokenOf(lock int) (t token.Token) {
	copy(t[:], fmt.Sprintf("t%07d%014d", lock, 0)) // random tokens differ from their beginning
	return t
}

func lockOfToken(s string) (int, error) {
	if len(s) != token.Size || s[0] != 't' {
		return 0, fmt.Errorf("token %q", s)
	}
	return strconv.Atoi(s[1:8])
}
