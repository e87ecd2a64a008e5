package frontend_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
)

// before has each node call f with the name of each command on a key, before it runs it.
func (f *front) before(key string, call func(s *fakeredis.Server, name string)) {
	for _, s := range f.Servers {
		s.OnCommand(func(_ int64, args []string) {
			if strings.Contains(strings.Join(args, " "), " "+key+" ") || args[len(args)-1] == key {
				call(s, strings.ToUpper(args[0]))
			}
		})
	}
}

const getOrSet = "local v = redis.call('get', KEYS[1]) if v then return v end " +
	"redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2]) return false"

// TestTakenAndGone: a script that shows the holder, or nil after an acquire, never shows nil for a
// holder gone between the attempt and the look.
func TestTakenAndGone(t *testing.T) {
	f := start(t, 3)
	c := f.dial(t)
	var isFree atomic.Bool
	f.before("k", func(s *fakeredis.Server, name string) {
		switch {
		case name == "SET" && !isFree.Load():
			s.Set("k", "other", time.Minute)
		case name == "PTTL":
			s.Del("k")
		}
	})
	require.Contains(t, c.DoWords("EVAL", getOrSet, "1", "k", "mine", "60000"), "-ERR the lock changed hands")
	isFree.Store(true)
	f.AwaitHolders(t, 0, "k")
	require.Equal(t, "nil", c.DoWords("EVAL", getOrSet, "1", "k", "mine", "60000"))
	f.AwaitHolders(t, 3, "k")
}

// TestReplyIsOfOneLook: a script that shows its own lock does not show the lock of a later holder.
func TestReplyIsOfOneLook(t *testing.T) {
	f := start(t, 3)
	c := f.dial(t)
	c.expect("SET k mine NX PX 60000 => +OK")
	f.AwaitHolders(t, 3, "k")
	var looks atomic.Int32
	f.before("k", func(s *fakeredis.Server, name string) {
		if name == "PTTL" && looks.Add(1) > 3 { // not in the first look at three nodes
			s.Set("k", "other", time.Hour)
		}
	})
	got := c.DoWords("EVAL", "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pttl', KEYS[1]) end return -3", "1", "k", "mine")
	left, err := strconv.Atoi(strings.TrimPrefix(got, ":"))
	require.NoError(t, err)
	require.InDelta(t, 60000, left, 5000)
}

// TestTTLOfSeveralKeys: the TTL of each of several keys counts from the reply.
func TestTTLOfSeveralKeys(t *testing.T) {
	f := start(t, 3)
	c := f.dial(t)
	f.Servers.Delay(100 * time.Millisecond)
	began := time.Now()
	words := []string{"EVAL", "for _, key in ipairs(KEYS) do if redis.call('exists', key) == 1 then return 0 end end " +
		"for _, key in ipairs(KEYS) do redis.call('set', key, ARGV[1], 'px', 20000) end return #KEYS", "16"}
	for i := range 16 {
		words = append(words, fmt.Sprint("k", i))
	}
	c.Send(testkit.Encode(append(words, "mine")...))
	if got := c.Receive(); got != ":16" {
		require.Contains(t, got, "-NOQUORUM the nodes have answered so late", "on a busy machine")
		return
	}
	testkit.Await(t, "all of the TTL behind 16 round trips of 1.6 s", func() bool {
		left := f.Servers[0].TTL("k0") // before the time is read
		return left+time.Since(began) > 21*time.Second
	})
}

// TestWatchedLockEnds: EXEC is nil if the lock ends between its look and its change, and if it had
// ended before a second WATCH of the same key.
func TestWatchedLockEnds(t *testing.T) {
	const other = "another-client-of-Redlock"
	f := start(t, 3)
	a, b := f.dial(t), f.dial(t)
	a.expect(`
		SET k v NX PX 60000 => +OK
		WATCH k => +OK
		MULTI => +OK
		PEXPIRE k 90000 => +QUEUED
	`)
	f.before("k", func(s *fakeredis.Server, name string) {
		if name != "PTTL" && name != "GETRANGE" {
			s.Set("k", other, time.Minute)
		}
	})
	a.expect("EXEC => nil")
	f.before("k", func(*fakeredis.Server, string) {})
	b.expect("GET k => \"" + other)
	a.expect("WATCH k => +OK")
	b.expect("DEL k => :1\nSET k v NX PX 60000 => +OK")
	a.expect(`
		WATCH k => +OK
		MULTI => +OK
		DEL k => +QUEUED
		EXEC => nil
		GET k => "v"
	`)
}
