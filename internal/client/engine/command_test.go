package engine

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/wire/command"
	"github.com/redlock-go/redlock/internal/wire/token"
	"github.com/redlock-go/redlock/resp"
)

// sentCommand is one command of a batch as a master understands it.
type sentCommand struct {
	kind  Kind
	keys  []int
	locks []int
	ttls  []int64

	shared bool
}

// eachCommand calls do with each command in buf: its first word, its kind, and its
// operands.
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
		case strings.Contains(text, command.SharedAcquireSHA1):
			kind = Acquire
		case verb == "SET", strings.Contains(text, command.ExtendSHA1), strings.Contains(text, command.SharedExtendSHA1), strings.Contains(text, command.ExtendScript):
			kind = Extend
		}
		do(verb, kind, r.Read(kind, buf[:n]))
		buf = buf[n:]
	}
}

func parse(b *conn.Batch) (cmds []sentCommand, err error) {
	eachCommand(b.Buf, func(_ string, kind Kind, operands []command.Operand) {
		cmd := sentCommand{kind: kind}
		for _, o := range operands {
			lock, e := lockOfToken(string(o.Token))
			if e != nil || kind.HasTTL() && o.TTL <= 0 {
				err = fmt.Errorf("%q with TTL %d in %q", o.Token, o.TTL, b.Buf)
			}
			cmd.keys = append(cmd.keys, keyOf(o.Key))
			cmd.locks = append(cmd.locks, lock)
			cmd.ttls = append(cmd.ttls, o.TTL)
			cmd.shared = o.Shared
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
