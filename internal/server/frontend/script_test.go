package frontend_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/test/testkit"
)

// Scripts by shape, as in lock libraries.
const (
	release = `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) else return 0 end`
	extend  = `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("pexpire", KEYS[1], ARGV[2]) else return 0 end`
	states  = `local v = redis.call("GET", KEYS[1]) if v == ARGV[1] then return redis.call("DEL", KEYS[1]) elseif v == false then return -1 else return 0 end`
	acquire = `if redis.call("exists", KEYS[1]) == 1 then return 0 end redis.call("set", KEYS[1], ARGV[1], "PX", ARGV[2]) return 1`
	force   = `return redis.call("del", KEYS[1])`
	count   = `local n = 0 for _, key in ipairs(KEYS) do if redis.call("get", key) == ARGV[1] then redis.call("del", key) n = n + 1 end end return n`
	data    = `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("hget", KEYS[1], "a") end return 0`
)

// TestScripts: scripts are loaded, called by their hash, and refused in words. TestOneRedis has their effects and answers.
func TestScripts(t *testing.T) {
	f := start(t, 3)
	a, b := f.dial(t), f.dial(t)
	name := strings.Trim(a.DoWords("SCRIPT", "LOAD", release), `"`)
	require.Len(t, name, 40)
	require.Equal(t, "*[:1 :0]", a.DoWords("SCRIPT", "EXISTS", name, strings.Repeat("0", 40)))
	require.Equal(t, "-NOSCRIPT No matching script. Please use EVAL.", a.DoWords("EVALSHA", strings.Repeat("0", 40), "1", "k", "v"))

	require.Equal(t, ":1", a.DoWords("EVAL", acquire, "1", "k", "v", "60000"))
	require.Equal(t, ":1", a.DoWords("EVALSHA", strings.ToUpper(name), "1", "k", "v"))
	f.AwaitEmpty(t)

	require.Equal(t, ":1", a.DoWords("EVAL", acquire, "1", "k", "v", "60000"))
	require.Contains(t, b.DoWords("EVAL", force, "1", "k"), "-ERR this script changes the lock of any owner")
	refused := b.DoWords("EVAL", data, "1", "k", "v")
	require.Contains(t, refused, "is not a lock script this server knows: ")
	require.Contains(t, refused, "HGET")
	require.Contains(t, b.DoWords("SCRIPT", "LOAD", data), "HGET")
	require.Contains(t, b.DoWords("EVAL", release, "0", "v"), "-ERR")
	require.Contains(t, b.DoWords("EVAL", release, "2", "v"), "-ERR Number of keys can't be greater")
	require.Equal(t, "+OK", b.DoWords("SCRIPT", "FLUSH"))
	require.Equal(t, ":1", a.DoWords("EVALSHA", name, "1", "k", "v"))
}

// TestSeveralKeys: a script to set several keys gets all or none.
func TestSeveralKeys(t *testing.T) {
	const all = `for i, key in ipairs(KEYS) do if redis.call("exists", key) == 1 then return 0 end end ` +
		`for i, key in ipairs(KEYS) do redis.call("set", key, ARGV[1], "PX", ARGV[2]) end return #KEYS`
	f := start(t, 3)
	c := f.dial(t)
	c.expect("SET b other NX PX 60000 => +OK")
	require.Equal(t, ":0", c.DoWords("EVAL", all, "3", "a", "b", "c", "v", "60000"))
	f.AwaitHolders(t, 0, "a")
	f.AwaitHolders(t, 0, "c")
	c.expect("DELEX b IFEQ other => :1")
	require.Equal(t, ":3", c.DoWords("EVAL", all, "3", "a", "b", "c", "v", "60000"))
	c.expect(`GET c => "v"`)
}

// TestSeveralKeysInPart: if a client has lost one of several keys, a script extends none of them, and its reply is
// Redis's: the released keys, and no more.
func TestSeveralKeysInPart(t *testing.T) {
	const extend = `for _, key in ipairs(KEYS) do if redis.call("get", key) ~= ARGV[1] then return 0 end end ` +
		`for _, key in ipairs(KEYS) do redis.call("pexpire", key, ARGV[2]) end return #KEYS`
	f := start(t, 3)
	c := f.dial(t)
	c.expect(`
		SET a v NX PX 60000 => +OK
		SET b v NX PX 60000 => +OK
		SET c other NX PX 60000 => +OK
	`)
	require.Equal(t, ":0", c.DoWords("EVAL", extend, "3", "a", "b", "c", "v", "120000"))
	c.expect("TTL a => ~60")
	require.Equal(t, ":2", c.DoWords("EVAL", extend, "2", "a", "b", "v", "120000"))
	c.expect("TTL a => ~120")
	require.Equal(t, ":2", c.DoWords("EVAL", count, "4", "a", "b", "c", "free", "v"))
	c.expect(`
		GET a => nil
		GET b => nil
		GET c => "other"
	`)
}

// TestSeveralKeysInOrder: a script runs after the earlier commands on any of its keys, and before the later ones.
func TestSeveralKeysInOrder(t *testing.T) {
	c := start(t, 3).dial(t)
	for range 50 {
		c.send("SET z v NX PX 60000")
		c.Send(testkit.Encode("EVAL", count, "3", "a", "m", "z", "v"))
		c.send("SET z w NX PX 60000", "SET a w NX PX 60000")
		c.Send(testkit.Encode("EVAL", count, "2", "z", "a", "w"))
		for _, want := range []string{"+OK", ":1", "+OK", "+OK", ":2"} {
			require.Equal(t, want, c.Receive())
		}
	}
}
