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

func parse(b *conn.Batch) (cmds []sentCommand, err error) {
	d := resp.Decoder{Limits: resp.Limits{Elements: 1 << 12}}
	var r command.Reader
	var v resp.Value
	for buf := b.Buf; len(buf) > 0; {
		n, err := d.Decode(buf, &v)
		if err != nil {
			return nil, err
		}
		text := string(buf[:n])
		cmd := sentCommand{kind: Release}
		switch {
		case strings.Contains(text, "\r\nNX\r\n"), strings.Contains(text, command.SharedAcquireSHA1):
			cmd.kind = Acquire
		case strings.Contains(text, "\r\nSET\r\n"), strings.Contains(text, command.ExtendSHA1), strings.Contains(text, command.SharedExtendSHA1), strings.Contains(text, command.ExtendScript):
			cmd.kind = Extend
		}
		for _, o := range r.Read(cmd.kind, buf[:n]) {
			if len(o.Token) != token.Size || o.Token[0] != 't' || cmd.kind.HasTTL() && o.TTL <= 0 {
				return nil, fmt.Errorf("%q with TTL %d in %q", o.Token, o.TTL, b.Buf)
			}
			lock, err := strconv.Atoi(string(o.Token[1:8]))
			if err != nil {
				return nil, err
			}
			cmd.keys = append(cmd.keys, int(o.Key[len("key-")]-'0'))
			cmd.locks = append(cmd.locks, lock)
			cmd.ttls = append(cmd.ttls, o.TTL)
			cmd.shared = o.Shared
		}
		cmds = append(cmds, cmd)
		buf = buf[n:]
	}
	if len(cmds) != b.Replies {
		err = fmt.Errorf("%d commands, %d replies announced", len(cmds), b.Replies)
	}
	return cmds, err
}

// tokenOf makes the number of a lock its token, so that masters know its
// lock.
func tokenOf(lock int) (t token.Token) {
	copy(t[:], fmt.Sprintf("t%07d%014d", lock, 0)) // random tokens differ from their beginning
	return t
}
