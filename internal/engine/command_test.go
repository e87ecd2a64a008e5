package engine

import (
	"fmt"
	"strconv"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/command"
	"github.com/redlock-go/redlock/internal/token"
	"github.com/redlock-go/redlock/resp"
)

const (
	scriptRelease = iota
	scriptExtend
)

// sentCommand is one command of a batch as a master understands it.
type sentCommand struct {
	verb    string // SET, RELEASE, EXTEND, LOAD
	script  int
	keys    []int
	locks   []int
	ttls    []int64
	native  bool // no script call
	paid    bool // a release that was owed
	retried bool // behind a SCRIPT LOAD of the same batch
	errand  bool // for one node alone, and out of order
	op      int
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
	if cmd.verb == "RELEASE" {
		for _, lock := range cmd.locks {
			cmd.world.check.lock(lock).excused[m.index] = true
		}
	}
}

// parse reads the commands of a batch, as strictly as a server would.
func parse(w *world, b *conn.Batch) ([]sentCommand, error) {
	var cmds []sentCommand
	var d resp.Decoder
	d.Limits = resp.Limits{Elements: 1 << 12}
	var v resp.Value
	for buf := b.Buf; len(buf) > 0; {
		n, err := d.Decode(buf, &v)
		if err != nil {
			return nil, err
		}
		buf = buf[n:]
		var words [][]byte
		it := v.Elements()
		for it.Next() {
			if e := it.Value(); e.Kind == resp.Bulk && !e.Null {
				words = append(words, e.Bytes)
			}
		}
		if v.Kind != resp.Array || int(v.Int) != len(words) {
			return nil, fmt.Errorf("not an array of bulks: %q", b.Buf)
		}
		cmd, err := parseWords(words)
		if err != nil {
			return nil, fmt.Errorf("%w in %q", err, b.Buf)
		}
		cmd.world = w
		cmd.retried = len(cmds) > 0 && cmds[len(cmds)-1].verb == "LOAD"
		cmds = append(cmds, cmd)
	}
	if len(cmds) != b.Replies {
		return nil, fmt.Errorf("%d commands, %d replies announced", len(cmds), b.Replies)
	}
	return cmds, nil
}

func parseWords(words [][]byte) (cmd sentCommand, err error) {
	word := func(i int) string {
		if i < len(words) {
			return string(words[i])
		}
		return ""
	}
	number := func(i int) (n int64) {
		n, e := strconv.ParseInt(word(i), 10, 64)
		if e != nil || n <= 0 {
			err = fmt.Errorf("word %d is %q", i, word(i))
		}
		return n
	}
	key := func(i int) int {
		s := word(i)
		if len(s) != 5 || s[:4] != "key-" || s[4] < '0' || s[4] >= '0'+maxKeys {
			err = fmt.Errorf("key %q", s)
			return 0
		}
		return int(s[4] - '0')
	}
	lock := func(i int) int {
		n, e := lockOfToken(word(i))
		if e != nil {
			err = e
		}
		return n
	}
	switch {
	case len(words) == 6 && word(0) == "SET" && word(3) == "NX" && word(4) == "PX":
		return sentCommand{verb: "SET", keys: []int{key(1)}, locks: []int{lock(2)}, ttls: []int64{number(5)}}, err
	case len(words) == 7 && word(0) == "SET" && word(3) == "IFEQ" && word(2) == word(4) && word(5) == "PX":
		return sentCommand{verb: "EXTEND", script: scriptExtend, native: true, keys: []int{key(1)}, locks: []int{lock(2)}, ttls: []int64{number(6)}}, err
	case len(words) == 3 && word(0) == "DELIFEQ":
		return sentCommand{verb: "RELEASE", native: true, keys: []int{key(1)}, locks: []int{lock(2)}}, err
	case len(words) == 4 && word(0) == "DELEX" && word(2) == "IFEQ":
		return sentCommand{verb: "RELEASE", native: true, keys: []int{key(1)}, locks: []int{lock(3)}}, err
	case len(words) == 3 && word(0) == "SCRIPT" && word(1) == "LOAD":
		cmd.verb = "LOAD"
		if word(2) == command.ExtendScript {
			cmd.script = scriptExtend
		} else if word(2) != command.ReleaseScript {
			err = fmt.Errorf("unknown script")
		}
		return cmd, err
	case len(words) >= 5 && word(0) == "EVALSHA":
		n, args := int(number(2)), 2
		cmd.verb = "RELEASE"
		if word(1) == command.ExtendSHA1 {
			cmd.verb, cmd.script, args = "EXTEND", scriptExtend, 3
		} else if word(1) != command.ReleaseSHA1 {
			err = fmt.Errorf("unknown digest %q", word(1))
		}
		if n > command.MaxKeys || len(words) != 3+args*n {
			return cmd, fmt.Errorf("%d words for %d keys", len(words), n)
		}
		for i := range n {
			cmd.keys = append(cmd.keys, key(3+i))
			cmd.locks = append(cmd.locks, lock(3+n+i))
			if args == 3 {
				cmd.ttls = append(cmd.ttls, number(3+2*n+i))
			}
		}
		return cmd, err
	}
	return cmd, fmt.Errorf("unknown command %q", words)
}

// tokenOf makes the number of a lock its token, so that masters can tell whose
// it is.
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
