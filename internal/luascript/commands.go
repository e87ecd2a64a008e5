package luascript

import (
	"bytes"
	"math"
	"strings"
)

// command is a call of redis.call. It is a pointer in the tree: its parent notes that the result is unused.
type command struct {
	name        string
	does        func(c *command, r *run, args []value) value
	args        []expression
	isStatement bool
}

// commands are those that act on the world. Others are refused with the text.
var commands map[string]func(c *command, r *run, args []value) value

func init() { // they refer to what refers to them
	commands = map[string]func(c *command, r *run, args []value) value{
		"GET": (*command).get, "EXISTS": (*command).exists,
		"PTTL": (*command).ttl, "TTL": (*command).ttl,
		"SET": (*command).set, "SETNX": (*command).setNX, "SETEX": (*command).setEX, "PSETEX": (*command).setEX,
		"DEL": (*command).del, "UNLINK": (*command).del,
		"EXPIRE": (*command).expire, "PEXPIRE": (*command).expire,
		"EXPIREAT": (*command).expire, "PEXPIREAT": (*command).expire, "PERSIST": (*command).persist,
		"PUBLISH": (*command).publish, "LPUSH": (*command).push, "RPUSH": (*command).push, "LTRIM": (*command).trim,
		"SELECT": (*command).selectDB,
	}
}

func (c *command) eval(r *run) value {
	r.step(10)
	before := len(r.args)
	for _, e := range c.args {
		v := r.eval(e)
		if k := v.kind; k == null || k == boolean || k == tables {
			refuse("an argument of %s is a %s", c.name, k)
		} else if k == hidden && c.name != "PUBLISH" {
			refuse("an argument of %s is not known", c.name)
		}
		r.args = append(r.args, v)
	}
	r.commands++
	result := c.does(c, r, r.args[before:])
	r.args = r.args[:before]
	return result
}

// count refuses a call with a wrong number of arguments.
func (c *command) count(args []value, least, most int) {
	if len(args) < least || len(args) > most {
		refuse("%s with %d arguments", c.name, len(args))
	}
}

// key returns the key that an argument names.
func (c *command) key(r *run, v value) *key {
	if v.kind != str || v.origin != fromKeys {
		refuse("%s on what is no member of KEYS", c.name)
	}
	for i := range r.keys {
		if bytes.Equal(r.keys[i].name, v.str) {
			return &r.keys[i]
		}
	}
	panic("luascript: a key that was not passed")
}

// lock returns the key that an argument names, which thereby belongs to the lock.
func (c *command) lock(r *run, v value) *key {
	k := c.key(r, v)
	k.isLock = true
	return k
}

func (c *command) get(r *run, args []value) value {
	c.count(args, 1, 1)
	k := c.lock(r, args[0])
	switch {
	case !k.exists:
		return no
	case k.kept:
		return value{kind: stored, key: k.index}
	}
	return value{kind: str, origin: fromArgs, str: k.value}
}

func (c *command) exists(r *run, args []value) value {
	c.count(args, 1, math.MaxInt)
	n := 0.0
	for _, arg := range args {
		n += count(c.lock(r, arg).exists).num
	}
	return num(n)
}

func (c *command) ttl(r *run, args []value) value {
	c.count(args, 1, 1)
	k, isSeconds := c.lock(r, args[0]), c.name == "TTL"
	switch ms := k.ttl.Milliseconds; {
	case !k.exists:
		return num(-2)
	case k.ttl.None:
		return num(-1)
	case k.ttl.Longer || k.ttl.Rest && ms != 0:
		refuse("%s after the TTL was set to an unknown time", c.name)
	case k.ttl.Rest && isSeconds:
		return value{kind: numeric, unit: seconds, key: k.index}
	case k.ttl.Rest:
		return value{kind: numeric, unit: milliseconds, key: k.index}
	case isSeconds:
		return num(float64((ms + 500) / 1000))
	default:
		return num(float64(ms))
	}
	return value{}
}

// maxTTL bounds a TTL in ms, below half of what a time.Duration holds: a sum of two does not overflow.
// One that overflows is short, or in the past, where the client believes that its lock lasts.
const maxTTL = math.MaxInt64 / 1_000_000 / 4

// until returns the TTL that v is for an option (PX, EXAT) or a command (PEXPIRE, SETEX): those in
// milliseconds begin with a P, and those with an absolute time end with AT.
func (c *command) until(r *run, k *key, word string, v value) TTL {
	n, unknown := v.integer("the TTL of " + c.name)
	inSeconds, isAbsolute := word[0] != 'P', strings.HasSuffix(word, "AT")
	if unknown != known {
		switch {
		case isAbsolute || inSeconds != (unknown == seconds):
			refuse("the TTL of %s is in a wrong unit", c.name)
		case v.key != k.index:
			refuse("the TTL of %s is the rest of that of another key", c.name)
		case n < 0:
			refuse("the TTL is made shorter than it is")
		}
	}
	if inSeconds {
		n = max(min(n, maxTTL), -maxTTL) * 1000
	}
	if isAbsolute {
		n = max(min(n, maxTTL*1000), -maxTTL*1000) - r.now
	}
	if n > maxTTL || n < -maxTTL {
		refuse("the TTL of %s is out of range", c.name)
	}
	return TTL{Milliseconds: n, Rest: unknown != known}
}

// write gives a key a value.
func (c *command) write(k *key, v value, ttl TTL) value {
	if v.kind != str || v.origin != fromArgs {
		refuse("%s of a value that is no argument of the call", c.name)
	}
	if !ttl.None && !ttl.Rest && ttl.Milliseconds <= 0 {
		refuse("%s with a TTL that is not positive", c.name)
	}
	k.exists, k.kept, k.value, k.ttl = true, false, v.str, ttl
	return status("OK")
}

func (c *command) set(r *run, args []value) value {
	c.count(args, 2, 8)
	k := c.lock(r, args[0])
	ttl, when, seen := TTL{None: true}, "", 0
	for i := 2; i < len(args); i++ {
		if args[i].kind != str {
			refuse("an option of SET that is no string")
		}
		option := strings.ToUpper(string(args[i].str))
		switch option {
		case "NX", "XX":
			if when != "" {
				refuse("SET with NX or XX twice")
			}
			when = option
			continue
		case "PX", "EX", "PXAT", "EXAT":
			if i++; i == len(args) {
				refuse("SET with %s and no time", option)
			}
			ttl = c.until(r, k, option, args[i])
		case "KEEPTTL":
			if k.exists {
				ttl = k.ttl
			}
		default:
			if args[i].origin != constants {
				option = "an option that is no constant"
			}
			refuse("SET with %s", option)
		}
		if seen++; seen > 1 {
			refuse("SET with more than one TTL")
		}
	}
	if when == "NX" && k.exists || when == "XX" && !k.exists {
		return no
	}
	return c.write(k, args[1], ttl)
}

func (c *command) setNX(r *run, args []value) value {
	c.count(args, 2, 2)
	k := c.lock(r, args[0])
	if k.exists {
		return num(0)
	}
	c.write(k, args[1], TTL{None: true})
	return num(1)
}

func (c *command) setEX(r *run, args []value) value {
	c.count(args, 3, 3)
	k := c.lock(r, args[0])
	return c.write(k, args[2], c.until(r, k, c.name, args[1]))
}

func (c *command) del(r *run, args []value) value {
	c.count(args, 1, math.MaxInt)
	n := 0.0
	for _, arg := range args {
		k := c.key(r, arg)
		k.touch(c)
		n += count(k.exists).num
		k.exists = false
	}
	return num(n)
}

func (c *command) expire(r *run, args []value) value {
	c.count(args, 2, 3)
	k := c.key(r, args[0])
	k.touch(c)
	ttl := c.until(r, k, c.name, args[1])
	option := ""
	if len(args) == 3 {
		if args[2].kind == str {
			option = strings.ToUpper(string(args[2].str))
		}
		switch option {
		case "NX":
			if !k.ttl.None {
				return num(0)
			}
		case "XX":
			if k.ttl.None {
				return num(0)
			}
		case "GT":
			ttl.Longer = true
		default:
			refuse("%s with an option that is not NX, XX or GT", c.name)
		}
	}
	switch {
	case !k.exists || ttl.Longer && k.ttl.None:
		return num(0)
	case ttl.Longer && (!k.ttl.Rest || k.ttl.Milliseconds != 0 || ttl.Rest || ttl.Milliseconds <= 0):
		refuse("%s GT with a TTL that is not positive, or after another was set", c.name)
	case ttl.Longer:
		// It is 0 where the TTL is longer already, which must not decide anything here.
		k.ttl = ttl
		return value{kind: hidden, truth: true}
	case !ttl.Rest && ttl.Milliseconds <= 0:
		k.exists = false
	default:
		k.ttl = ttl
	}
	return num(1)
}

func (c *command) persist(r *run, args []value) value {
	c.count(args, 1, 1)
	k := c.lock(r, args[0])
	if !k.exists || k.ttl.None {
		return num(0)
	}
	k.ttl = TTL{None: true}
	return num(1)
}

func (c *command) publish(r *run, args []value) value {
	c.count(args, 2, 2)
	r.hasSignalled = true
	if isWord(args[0]) && isWord(args[1]) && len(r.messages) < maxMessages {
		r.messages = append(r.messages, Message{args[0].word(), args[1].word()})
	}
	return value{kind: hidden}
}

// maxMessages bounds what one call publishes.
const maxMessages = 16

func isWord(v value) bool {
	return v.kind == str || v.kind == numeric && v.unit == known && v.num == math.Trunc(v.num) && math.Abs(v.num) < 1e14
}

// push is a signal if the key is no lock, and if what is pushed carries no data.
func (c *command) push(r *run, args []value) value {
	c.count(args, 2, math.MaxInt)
	for _, e := range c.args[1:] {
		if _, ok := e.(constant); !ok {
			refuse("%s of what is no constant", c.name)
		}
	}
	c.key(r, args[0]).isPushed = true
	r.hasSignalled = true
	return value{kind: hidden}
}

func (c *command) trim(r *run, args []value) value {
	c.count(args, 3, 3)
	c.key(r, args[0]).isPushed = true
	r.hasSignalled = true
	return value{kind: hidden}
}

func (c *command) selectDB(r *run, args []value) value {
	c.count(args, 1, 1)
	db, unknown := args[0].integer("the database of SELECT")
	if unknown != known || db < 0 || db > math.MaxInt32 || r.commands > 1 {
		refuse("SELECT of a database below 0, or after other commands")
	}
	r.db = int(db)
	return status("OK")
}
