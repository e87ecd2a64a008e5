package frontend_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/server/frontend"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// TestHandshakes: the first commands of client libraries, with replies that let them go on. A client of RESP3 gets its null,
// also in place of RESP2's null array.
func TestHandshakes(t *testing.T) {
	f := start(t, 3)
	c := f.dial(t)
	c.expect(`
		PING => +PONG
		CLIENT SETINFO LIB-NAME x => +OK
		client setname me => +OK
		CLIENT GETNAME => "me"
		CLIENT MAINT_NOTIFICATIONS ON => -ERR unknown subcommand
		CLIENT TRACKING ON => -ERR unknown subcommand
		HELLO 9 => -NOPROTO
		HELLO 2 => *["server" "redis" "version" "8.4.0" "proto" :2
		GET k => nil
		hello 3 SETNAME you => %["server" "redis" "version" "8.4.0" "proto" :3
		CLIENT GETNAME => "you"
		GET k => _
		SET lock:n v NX PX 60000 => +OK
		BLPOP lock-signal:n 0.01 => _
		SELECT 3 => +OK
		SELECT 16 => -ERR DB index is out of range
		ECHO hi => "hi"
		COMMAND DOCS => *[]
		INFO server => "# Server
		CLUSTER SLOTS => -ERR This instance has cluster support disabled
		AUTH secret => -ERR AUTH <password> called without any password
		HGETALL k => -ERR unknown command 'HGETALL': this server only holds locks
		GET => -ERR wrong number of arguments for 'get' command
		RESET => +RESET
		CLIENT GETNAME => nil
		QUIT => +OK
	`)
	require.Equal(t, "closed", c.Receive())

	raw := f.dial(t)
	raw.send("GET k")
	require.Equal(t, "nil", raw.Receive())
	long := strings.Repeat("x", 60<<10) // it would be kept, uncounted, until the connection ends
	require.Contains(t, raw.DoWords("CLIENT", "SETNAME", long), "-ERR Client names have at most 512 bytes")
	require.Contains(t, raw.DoWords("HELLO", "3", "SETNAME", long), "-ERR Syntax error in HELLO option")
	_, err := raw.Conn.Write([]byte("PING\r\n\r\nPING x\n"))
	require.NoError(t, err)
	require.Equal(t, "+PONG", raw.Receive())
	require.Equal(t, `"x"`, raw.Receive())
}

// TestLocks: one key, as clients of one Redis lock, query, extend and release it.
func TestLocks(t *testing.T) {
	f := start(t, 3)
	a, b := f.dial(t), f.dial(t)
	a.expect("SET k mine NX PX 60000 => +OK")
	b.expect(`
		SET k other px 60000 nx => nil
		set k mine nx px 60000 => nil
		GET k => "mine"
		EXISTS k => :1
		TTL k => ~60
		DELEX k IFEQ other => :0
		DELIFEQ k other => :0
		SET k other XX PX 60000 => nil
		SET k other EX 60 IFEQ other => nil
	`)
	a.expect(`
		SET k mine EX 120 IFEQ mine => +OK
		TTL k => ~120
		SET k mine XX PX 30000 => +OK
		TTL k => ~30
		PEXPIRE k 90000 => :1
		EXPIRE k -1 GT => :0
		TTL k => ~90
		EXPIRE k 10 IF => -ERR Unsupported option IF
		DELEX k IFEQ mine => :1
		SET k mine XX PX 30000 => nil
		DEL k => :0
		SET k - EX 60 NX => +OK
		GET k => ""
		DEL k => :1
	`)
	f.AwaitEmpty(t)
	a.expect(`
		SET k v => -ERR this server only holds locks, and keeps no data: SET needs NX
		SET k v XX PX 5000 GET => -ERR this server only holds locks
		SET k v NX PX 5000 KEEPTTL => -ERR this server only holds locks
		SET k v NX XX PX 5 => -ERR syntax error
		SET k v NX PX => -ERR syntax error
		SET k v NX PX 0 => -ERR invalid expire time in 'set' command
		SET k v NX PX x => -ERR value is not an integer or out of range
		SET k v NX PX 007 => -ERR value is not an integer or out of range
		SET k v NX => -ERR lock "k": asks for no expiry
		SETNX k v => -ERR lock "k": asks for no expiry
		PSETEX k 1000 v => -ERR this server only holds locks: use SET with NX
		BLPOP lock-signal:n nan => -ERR timeout is not a float
		BLPOP list 1 => -ERR this server only holds locks
		SET k v NX EX 100000000 => -ERR lock "k": TTL is not allowed
		SET k v NX PXAT 1 => -ERR lock "k": TTL is not allowed
		SET held v NX PX 60000 => +OK
		EXPIRE held 100000000 => -ERR lock "held": TTL is not allowed
		PEXPIRE held 9223372036854 => -ERR lock "held": TTL is not allowed
		SET held v XX EX 9223372036 => -ERR lock "held": TTL is not allowed
		TTL held => ~60
	`)
	require.Contains(t, a.Do("SET k "+strings.Repeat("v", 300)+" NX PX 5000"), "-ERR value has 300 bytes, at most")
	require.Contains(t, a.Do("SET "+strings.Repeat("k", 5000)+" v NX PX 5000"), "-ERR key has 5000 bytes")
}

// TestDatabasesAreApart: no key of one database is a key of another, nor of another user.
func TestDatabasesAreApart(t *testing.T) {
	f := start(t, 3, withUsers(t, "a p a:\nb p b:"))
	names := []string{"x", "db1:x", "db0:x", "db1:db1:x", "b:x", "a:x"}
	n := 0
	var all []*client
	for _, user := range []string{"a", "b"} {
		for db := range 2 {
			c := f.dial(t)
			c.expect("AUTH " + user + " p => +OK")
			c.expect(fmt.Sprint("SELECT ", db, " => +OK"))
			all = append(all, c)
			for _, name := range names {
				c.expect(fmt.Sprintf("SET %s %s%d NX PX 60000 => +OK", name, user, db))
				n++
			}
			c.expect(fmt.Sprintf("SET lock:n %s%d NX PX 60000 => +OK", user, db))
			n++
		}
	}
	f.AwaitHolders(t, 3, "a:x")
	testkit.Await(t, "each its own", func() bool { return len(f.Servers[0].Keys()) == n })
	all[3].expect(`
		DEL x db1:x db0:x db1:db1:x b:x a:x => :6
		EXISTS x => :0
		RL.WAIT x 60000 => :1
		DEL lock:n => :1
		BLPOP lock-signal:n 60 => *["lock-signal:n" "1"]
	`)
	owner := all[3]
	owner.expect(`RL.LOCK only 60000 VALUE mine KEEP => *["token" "mine"`)
	for _, c := range all[:3] { // another client's lock shows neither a value nor a digest
		c.expect("RL.EXTEND only mine 1000 => nil\nRL.UNLOCK only mine => :0\nRL.WAIT only 60000 => :1\nDEL only => :0")
		require.Equal(t, 3, strings.Count(c.Do("RL.INSPECT only"), `"digest" "" "ttl-ms" :0`))
	}
	require.NotContains(t, owner.Do("RL.INSPECT only"), `"digest" "" `)
	owner.expect("RL.EXTEND only mine 60000 => :60000\nRL.UNLOCK only mine => :1")
	all[0].expect(`
		EXISTS x db1:x db0:x db1:db1:x b:x a:x => :6
		GET x => "a0"
		RL.UNLOCK x b1 => :0
		BLPOP lock-signal:n 0.01 => nil
		RL.WAIT x 10 => :0
	`)
	all[1].expect(`
		EXISTS x db1:x db0:x db1:db1:x b:x a:x => :6
		GET x => "a1"
	`)
	all[2].expect(`
		EXISTS x db1:x db0:x db1:db1:x b:x a:x => :6
		GET x => "b0"
	`)
	for _, wrong := range []string{"one p a\ntwo p ab", "one p\ntwo p b:"} {
		_, err := frontend.ReadUsers(strings.NewReader(wrong))
		require.ErrorContains(t, err, "begins with the prefix")
	}
	withUsers(t, "one p a:\ntwo p a:") // they share their locks on purpose
}

// TestTokens: the nodes store a fresh token for each grant, so a late release of an earlier grant
// with the same value frees no later lock of another client.
func TestTokens(t *testing.T) {
	f := start(t, 3)
	c := f.dial(t)
	stored := map[string]bool{}
	for range 3 {
		c.expect("SET k v NX PX 60000 => +OK")
		var value string
		testkit.Await(t, "a token not seen before", func() bool { // the node may be behind a quorum
			value, _ = f.Servers[0].Get("k")
			return value != "" && !stored[value]
		})
		require.Regexp(t, `^[\w-]{22}~[^|]+\|v$`, value)
		stored[value] = true
		c.expect("DELEX k IFEQ v => :1")
	}
}

// TestFrontEndsShareNothing: a lock granted by one front end is seen, extended and released through
// another, and excludes clients of the library.
func TestFrontEndsShareNothing(t *testing.T) {
	one := start(t, 3)
	two := startOn(t, one.Cluster)
	a, b := one.dial(t), two.dial(t)
	a.expect("SET k v NX PX 60000 => +OK")
	b.expect(`
		SET k w NX PX 60000 => nil
		GET k => "v"
		SET k v XX PX 120000 => +OK
		DELEX k IFEQ v => :1
		SET k v NX PX 60000 => +OK
	`)
	_, err := one.TryAcquire(t.Context(), "k", time.Minute)
	require.ErrorIs(t, err, redlock.ErrTaken)
	// The table of the first has a token gone by now. The second granted this lock.
	a.expect(`
		DELEX k IFEQ other => :0
		DELEX k IFEQ v => :1
		GET k => nil
	`)
	lock := cluster.MustAcquire(t, one.Client, "k", time.Minute)
	a.expect(`
		SET k v NX PX 60000 => nil
		DELEX k IFEQ v => :0
		DEL k => :1
	`)
	require.ErrorIs(t, lock.Release(t.Context()), redlock.ErrNotHeld)
}

// TestNoQuorum: too few nodes give an error with their causes, never nil or "not free".
func TestNoQuorum(t *testing.T) {
	f := start(t, 3)
	c := f.dial(t)
	c.expect("SET held v NX PX 60000 => +OK")
	f.Servers[0].Down()
	c.expect(`
		SET k v NX PX 60000 => +OK
		DELEX k IFEQ v => :1
	`)
	f.Servers[1].Down()
	cluster.AwaitNodesUp(t, f.Client, 1)
	c.expect(`
		SET k v NX PX 60000 => -NOQUORUM no quorum (2 of 3 nodes failed
		GET held => -NOQUORUM
		EXISTS held => -NOQUORUM
		PTTL held => -NOQUORUM
		DEL k => -NOQUORUM
		DELEX held IFEQ v => -NOQUORUM
		SET held v XX PX 1000 => -NOQUORUM
		RL.WAIT held 300 => -NOQUORUM
	`)
}

// TestWithoutExpiry: the option grants such locks, kept alive until they are released or given an expiry.
func TestWithoutExpiry(t *testing.T) {
	f := start(t, 3, func(c *frontend.Config) { c.NoTTL = 30 * time.Second })
	c := f.dial(t)
	c.expect("SET k v NX => +OK")
	require.Equal(t, 1, f.Client.Stats().KeptAlive)
	c.expect(`
		SETNX k v => :0
		TTL k => :-1
		DELEX k IFEQ v => :1
		SETNX k v => :1
		EXPIRE k 100 => :1
		TTL k => ~100
	`)
	require.Equal(t, 0, f.Client.Stats().KeptAlive)
}

// TestKeptElsewhere: one front end gives no expiry to a lock kept alive by another, since its client would believe in
// it. It may release the lock, and so ends it.
func TestKeptElsewhere(t *testing.T) {
	change := func(c *frontend.Config) { c.NoTTL = 30 * time.Second }
	one := start(t, 3, change)
	two := startOn(t, one.Cluster, change)
	a, b := one.dial(t), two.dial(t)
	a.expect(`
		SET k v NX => +OK
		RL.LOCK own 60000 VALUE v KEEP => *["token"
	`)
	b.expect(`
		GET k => "v"
		PTTL k => :-1
		EXPIRE k 100 => -ERR lock "k": was granted without an expiry
		SET k v XX PX 1000 => -ERR lock "k": was granted without an expiry
		RL.EXTEND own v 1000 => -ERR lock "own": was granted without an expiry
		EXPIRE k 100 GT => :0
		DELEX k IFEQ v => :1
		GET k => nil
	`)
}

// TestKeptLocksAreBounded: a client cannot have unlimited locks without an expiry kept alive, and
// takes nothing from another.
func TestKeptLocksAreBounded(t *testing.T) {
	f := start(t, 1, func(c *frontend.Config) { c.NoTTL = 30 * time.Second })
	a, b := f.dial(t), f.dial(t)
	a.expect(`RL.LOCK kept 60000 KEEP => *["token"`)
	granted := 0
	for _, reply := range a.pipeline(1100, "SETNX k%d v") {
		if reply == ":1" {
			granted++
		}
	}
	require.Equal(t, 1023, granted)
	a.expect("SET other v NX => -ERR lock \"other\": would be kept alive beside too many others")
	b.expect("SET other v NX => +OK")
	a.expect("EXPIRE kept 60 => :1")
	testkit.Await(t, "room for another", func() bool { return a.Do("SET another v NX") == "+OK" })

	granted = f.Client.Stats().KeptAlive
	for i := range 16 {
		for _, reply := range f.dial(t).pipeline(1024, fmt.Sprint("SETNX c", i, "-%d v")) {
			if reply == ":1" {
				granted++
			}
		}
	}
	require.Equal(t, 16384, granted, "of a server")
}

// TestUsers: the commands that need a login, and the prefix of a user's keys.
func TestUsers(t *testing.T) {
	f := start(t, 1, withUsers(t, "default secret def:\n\n# a comment\nann sha256:"+
		"2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b app:\n"))
	c := f.dial(t)
	c.expect(`
		SET k v NX PX 60000 => -NOAUTH
		HELLO 3 => -NOAUTH HELLO must be called
		AUTH wrong => -WRONGPASS
		AUTH ann wrong => -WRONGPASS
		AUTH eve - => -WRONGPASS
		HELLO 2 AUTH ann secret => *["server"
		SET k v NX PX 60000 => +OK
		AUTH secret => +OK
		GET k => nil
	`)
	require.ElementsMatch(t, []string{"app:k"}, f.Servers[0].Keys())
	for _, wrong := range []string{"", "ann\n", "a b c d", "a sha256:12", "a b\na c"} {
		_, err := frontend.ReadUsers(strings.NewReader(wrong))
		require.Error(t, err, wrong)
	}
}

// TestTransactions: WATCH and EXEC, used by StackExchange.Redis to release and extend a lock without scripts.
func TestTransactions(t *testing.T) {
	f := start(t, 3)
	a, b := f.dial(t), f.dial(t)
	a.expect(`
		SET k v NX PX 60000 => +OK
		WATCH k => +OK
		GET k => "v"
		MULTI => +OK
		PEXPIRE k 90000 => +QUEUED
		GET k => -ERR this server does not run GET in a MULTI
		EXEC => -EXECABORT
		WATCH k => +OK
		MULTI => +OK
		PEXPIRE k 90000 => +QUEUED
		EXEC => *[:1]
		TTL k => ~90
		WATCH k => +OK
		MULTI => +OK
	`)
	b.expect(`
		DELEX k IFEQ v => :1
		SET k v NX PX 60000 => +OK
	`)
	// The value is the same, and the lock is not: it was released since.
	a.expect(`
		SET k v PX 90000 XX => +QUEUED
		EXEC => nil
		GET k => "v"
		WATCH k => +OK
		MULTI => +OK
		DEL k => +QUEUED
		EXEC => *[:1]
		GET k => nil
		MULTI => +OK
		DEL k => -ERR this server only holds locks: MULTI needs a WATCH
		EXEC => -EXECABORT
		WATCH k => +OK
		WATCH other => -ERR this server watches one key
		UNWATCH => +OK
		WATCH k => +OK
		MULTI => +OK
		INCR k => -ERR unknown command
		EXEC => -EXECABORT
		WATCH k => +OK
		MULTI => +OK
		SET k v NX PX 1000 => -ERR in a MULTI SET may only extend
		DEL other => -ERR in a MULTI the command is about the key
		DEL k other => -ERR this server does not run DEL of several keys in a MULTI
		DELEX k IFEQ w => -ERR in a MULTI the command needs the value
		MULTI => -ERR MULTI calls can not be nested
		WATCH k => -ERR WATCH inside MULTI is not allowed
		DISCARD => +OK
		EXEC => -ERR EXEC without MULTI
		DISCARD => -ERR DISCARD without MULTI
		SET k v NX PX 60000 => +OK
		WATCH k => +OK
		MULTI => +OK
		EXPIRE k 10 GT => +QUEUED
		DEL k => -ERR this server takes one command in a MULTI
		DISCARD => +OK
		WATCH k => +OK
		MULTI => +OK
		UNWATCH => +QUEUED
		EXPIRE k 10 GT => +QUEUED
		UNWATCH => +QUEUED
		EXEC => *[+OK :0 +OK]
		WATCH k => +OK
		MULTI => +OK
		DEL k => +QUEUED
		EXEC => *[:1]
	`)
}
