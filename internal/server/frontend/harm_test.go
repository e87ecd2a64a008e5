package frontend_test

import (
	"cmp"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/server/frontend"
	"github.com/redlock-go/redlock/internal/server/session"
	"github.com/redlock-go/redlock/internal/test/testkit"
)

// TestRefusedCommandsLeaveRoom: commands beyond the memory of all clients take no room of their connection.
func TestRefusedCommandsLeaveRoom(t *testing.T) {
	f := start(t, 3, func(c *frontend.Config) { c.Limits = session.Limits{Memory: 40 << 10} })
	c := f.dial(t)
	for range 14 {
		c.expect("ECHO " + strings.Repeat("x", 10<<10) + " => -OOM")
	}
	f.Servers.Delay(200 * time.Millisecond)
	began := time.Now()
	require.Equal(t, slices.Repeat([]string{"+OK"}, 100), c.pipeline(100, "SET k%d v NX PX 60000"))
	require.Less(t, time.Since(began), 19*time.Second, "one after another takes 20 s")
}

// TestRepliesAreCharged: replies behind an incomplete command are counted. Where they exceed the
// memory of all clients, another still has its small commands answered.
func TestRepliesAreCharged(t *testing.T) {
	f := start(t, 3, func(c *frontend.Config) { c.Limits = session.Limits{Memory: 400 << 10, Command: 1 << 20} })
	c := f.dial(t)
	f.Servers.Mute()
	c.send(append([]string{"SET k v NX PX 60000"}, slices.Repeat([]string{"INFO"}, 1000)...)...)
	f.AwaitHolders(t, 3, "k")
	other := f.dial(t)
	testkit.Await(t, "no room for another but for small commands", func() bool {
		return !strings.HasPrefix(f.dial(t).Do("ECHO "+strings.Repeat("x", 600)), `"`)
	})
	for range 100 {
		require.Equal(t, []string{`"0"`, `"1"`, `"2"`}, other.pipeline(3, "PING %d"))
	}
	f.Heal(t)
	require.Equal(t, "+OK", c.Receive())
	for range 1000 {
		c.Receive()
	}
	c.expect("PING => +PONG")
	other.expect("PING => +PONG")
}

// TestManyScripts: a client with numbers in its scripts leaves room for the scripts of others, and displaces none that
// another client calls now and then.
func TestManyScripts(t *testing.T) {
	f := start(t, 1)
	a, b := f.dial(t), f.dial(t)
	called := strings.Trim(b.DoWords("SCRIPT", "LOAD", release), `"`)
	require.Equal(t, ":0", b.DoWords("EVALSHA", called, "1", "k", "v"))
	var first string
	for i := range 2500 {
		loaded := a.DoWords("SCRIPT", "LOAD", fmt.Sprint("return redis.call('pexpire', KEYS[1], ", i+1, ")"))
		require.Regexp(t, `^"[0-9a-f]{40}"$`, loaded)
		first = cmp.Or(first, strings.Trim(loaded, `"`))
		if i%1000 == 0 {
			require.Equal(t, ":0", b.DoWords("EVALSHA", called, "1", "k", "v"))
		}
	}
	require.Regexp(t, `^"[0-9a-f]{40}"$`, b.DoWords("SCRIPT", "LOAD", "return redis.call('get', KEYS[1])"))
	require.Contains(t, a.DoWords("EVALSHA", first, "1", "k"), "-NOSCRIPT")
	require.Equal(t, ":0", b.DoWords("EVALSHA", called, "1", "k", "v"))
}

// TestIdleConnections: a connection costs little memory after a command. That of an idle one is given back: TestParking.
func TestIdleConnections(t *testing.T) {
	f := start(t, 1)
	const n = 500
	used := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc + m.StackInuse
	}
	before := used()
	for range n {
		c, err := net.Dial("tcp", f.addr)
		require.NoError(t, err)
		defer c.Close()
		_, _ = c.Write([]byte("PING\r\n"))
		_, err = io.ReadFull(c, make([]byte, len("+PONG\r\n")))
		require.NoError(t, err)
	}
	require.Less(t, (used()-before)/n, uint64(10_000), "bytes for both ends of a connection")
}

// TestStrangers: clients that have not logged in take no memory and no connection from the others. A login is always
// possible beside them.
func TestStrangers(t *testing.T) {
	f := start(t, 3, withUsers(t, "app secret app:\n"), func(c *frontend.Config) {
		c.Limits = session.Limits{Memory: 128 << 10, Clients: 120, Strangers: 60}
	})
	c := f.dial(t)
	c.expect("AUTH app secret => +OK")
	half := "*3\r\n$4\r\nEVAL\r\n$9000\r\n" + strings.Repeat("x", 5000)
	for range 300 {
		stranger, err := net.Dial("tcp", f.addr)
		require.NoError(t, err)
		defer stranger.Close()
		_, _ = stranger.Write([]byte(half))
	}
	for i := range 500 { // the strangers' messages arrive meanwhile
		text := release + strings.Repeat(" ", 4000)
		require.Equal(t, ":0", c.DoWords("EVAL", text, "1", fmt.Sprint("k", i), "v"))
	}
	d := f.dial(t)
	d.expect("AUTH app secret => +OK\nSET k v NX PX 60000 => +OK")
	long := f.dial(t)
	require.Contains(t, long.DoWords("PING", strings.Repeat("x", 40<<10)), "-ERR Protocol error")
	c.expect(`GET k => "v"`)
}
