package luascript

import (
	"math"
	"strings"
)

// command is a command that acts on the world. Others are refused with the text.
type command struct {
	least, most int // arguments
	does        func(r *run, args []value) value
}

var commands = map[string]command{
	"GET": {1, 1, (*run).get}, "EXISTS": {1, maxArgs, (*run).exists}, "PTTL": {1, 1, (*run).ttl}, "TTL": {1, 1, (*run).ttl},
	"SET": {2, 8, (*run).set}, "SETNX": {2, 2, (*run).setNX}, "SETEX": {3, 3, (*run).setEX}, "PSETEX": {3, 3, (*run).setEX},
	"DEL": {1, maxArgs, (*run).exists}, "UNLINK": {1, maxArgs, (*run).exists}, "PERSIST": {1, 1, (*run).persist},
	"EXPIRE": {2, 2, (*run).expire}, "PEXPIRE": {2, 2, (*run).expire}, "EXPIREAT": {2, 2, (*run).expire}, "PEXPIREAT": {2, 2, (*run).expire},
	"PUBLISH": {2, 2, (*run).publish}, "LPUSH": {2, maxArgs, (*run).push}, "RPUSH": {2, maxArgs, (*run).push},
	"SELECT": {1, 1, (*run).selectDB},
}

// call calls a command. isUnused: its result is.
func (r *run) call(name string, c command, args []expression, isUnused bool) value {
	r.step(10)
	given := r.all(args)
	for _, v := range given {
		if k := v.kind; k == null || k == boolean || k == tables {
			refuse("an argument of %s is a %s", name, k)
		} else if k == hidden && name != "PUBLISH" {
			refuse("an argument of %s is not known", name)
		}
	}
	if len(given) < c.least || len(given) > c.most {
		refuse("%s with %d arguments", name, len(given))
	}
	r.command, r.isUnused = name, isUnused
	r.commands++
	return c.does(r, given)
}

// key returns the key named by an argument of the command.
func (r *run) key(v value) *key {
	if v.kind != str || v.origin != fromKeys {
		refuse("%s on what is no member of KEYS", r.command)
	}
	return &r.keys[v.key]
}

// lock returns the key named by an argument. So this key belongs to the lock.
func (r *run) lock(v value) *key {
	k := r.key(v)
	k.isLock = true
	return k
}

// touch is lock for a possible command of a signal, if its result is not used.
func (r *run) touch(v value) *key {
	k := r.key(v)
	k.isTouched, k.isLock = true, k.isLock || !r.isUnused
	return k
}

func (r *run) get(args []value) value {
	switch k := r.lock(args[0]); {
	case !k.exists:
		return truth(false)
	case k.kept:
		return value{kind: stored, key: args[0].key}
	default:
		return value{kind: str, origin: fromArgs, str: k.value}
	}
}

func (r *run) ttl(args []value) value {
	k, unit := r.lock(args[0]), PTTL
	ms := float64(k.ttl.Milliseconds)
	if r.command == "TTL" {
		unit, ms = TTLSeconds, math.Floor((ms+500)/1000)
	}
	switch {
	case !k.exists:
		return num(-2)
	case k.ttl.None:
		return num(-1)
	case k.ttl.Rest && k.ttl.Milliseconds != 0:
		refuse("%s after the TTL was set to an unknown time", r.command)
	case k.ttl.Rest:
		return value{kind: numeric, unit: unit, key: args[0].key}
	}
	return num(ms)
}

// maxTTL bounds a TTL in ms, below half the range of a time.Duration: a sum of two does not
// overflow. An overflowing TTL is short, or in the past, and the client would still believe in its
// lock.
const maxTTL = math.MaxInt64 / 1_000_000 / 4

// until returns the TTL of v for an option (PX, EXAT) or a command (PEXPIRE, SETEX): a P at the
// beginning means milliseconds, an AT at the end an absolute time.
func (r *run) until(key int, word string, v value) TTL {
	n, unknown := v.integer("the TTL of " + r.command)
	inSeconds, isAbsolute := word[0] != 'P', strings.HasSuffix(word, "AT")
	if unknown != known {
		switch {
		case isAbsolute || inSeconds != (unknown == TTLSeconds):
			refuse("the TTL of %s is in a wrong unit", r.command)
		case v.key != key:
			refuse("the TTL of %s is the rest of that of another key", r.command)
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
		refuse("the TTL of %s is out of range", r.command)
	}
	return TTL{Milliseconds: n, Rest: unknown != known}
}

// write gives a key a value.
func (r *run) write(k *key, v value, ttl TTL) value {
	if v.kind != str || v.origin != fromArgs {
		refuse("%s of a value that is no argument of the call", r.command)
	}
	if !ttl.None && !ttl.Rest && ttl.Milliseconds <= 0 {
		refuse("%s with a TTL that is not positive", r.command)
	}
	k.exists, k.kept, k.value, k.ttl = true, false, v.str, ttl
	return oneOf("ok", literal("OK"))
}

func (r *run) set(args []value) value {
	k := r.lock(args[0])
	ttl, when, given := TTL{None: true}, "", map[string]int{}
	for i := 2; i < len(args); i++ {
		option, sort := strings.ToUpper(string(args[i].str)), "TTL"
		switch option {
		case "NX", "XX":
			when, sort = option, "NX or XX"
		case "PX", "EX", "PXAT", "EXAT":
			i++
			if i == len(args) {
				refuse("SET with %s and no time", option)
			}
			ttl = r.until(args[0].key, option, args[i])
		case "KEEPTTL":
			if k.exists {
				ttl = k.ttl
			}
		default:
			if args[i].kind != str || args[i].origin != inText {
				option = "an option that is no constant"
			}
			refuse("SET with %s", option)
		}
		given[sort]++
		if given[sort] > 1 {
			refuse("SET with more than one %s", sort)
		}
	}
	if when == "NX" && k.exists || when == "XX" && !k.exists {
		return truth(false)
	}
	return r.write(k, args[1], ttl)
}

func (r *run) setNX(args []value) value {
	if k := r.lock(args[0]); !k.exists {
		r.write(k, args[1], TTL{None: true})
		return num(1)
	}
	return num(0)
}

func (r *run) setEX(args []value) value {
	return r.write(r.lock(args[0]), args[2], r.until(args[0].key, r.command, args[1]))
}

// exists is EXISTS, and DEL.
func (r *run) exists(args []value) value {
	n, use := 0.0, r.touch
	if r.command == "EXISTS" {
		use = r.lock
	}
	for _, arg := range args {
		if k := use(arg); k.exists {
			n++
			k.exists = r.command == "EXISTS"
		}
	}
	return num(n)
}

func (r *run) expire(args []value) value {
	k := r.touch(args[0])
	ttl := r.until(args[0].key, r.command, args[1])
	switch {
	case !k.exists:
		return num(0)
	case !ttl.Rest && ttl.Milliseconds <= 0:
		k.exists = false
	default:
		k.ttl = ttl
	}
	return num(1)
}

func (r *run) persist(args []value) value {
	k := r.lock(args[0])
	if !k.exists || k.ttl.None {
		return num(0)
	}
	k.ttl = TTL{None: true}
	return num(1)
}

// maxMessages bounds the messages of one call.
const maxMessages = 16

func (r *run) publish(args []value) value {
	r.hasSignalled = true
	if args[0].hasWord() && args[1].hasWord() && len(r.messages) < maxMessages {
		r.messages = append(r.messages, Message{args[0].word(), args[1].word()})
	}
	return value{kind: hidden}
}

// push is a signal if the key is no lock, and if only constants are pushed.
func (r *run) push(args []value) value {
	for _, v := range args[1:] {
		if v.origin != inText {
			refuse("%s of what is no constant", r.command)
		}
	}
	r.key(args[0]).isPushed, r.hasSignalled = true, true
	return value{kind: hidden}
}

func (r *run) selectDB(args []value) value {
	db, unknown := args[0].integer("the database of SELECT")
	if unknown != known || db < 0 || db > math.MaxInt32 || r.commands > 1 {
		refuse("SELECT of a database below 0, or after other commands")
	}
	r.db = int(db)
	return oneOf("ok", literal("OK"))
}
