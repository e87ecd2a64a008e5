package frontend_test

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/server/frontend"
	"github.com/redlock-go/redlock/internal/server/session"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
	"github.com/redlock-go/redlock/resp"
)

// TestGoneBehindAWait: the end of a client is noticed behind an endless wait and more commands than
// a connection may have under way, so its kept locks are released.
func TestGoneBehindAWait(t *testing.T) {
	f := start(t, 3)
	c := f.dial(t)
	c.expect("RL.LOCK kept 60000 KEEP => [$token")
	c.send("RL.WAIT kept 0")
	c.send(strings.Split(strings.Repeat("PING\n", 1999)+"PING", "\n")...)
	require.NoError(t, c.conn.Close())
	f.awaitOpen(t, 0)
	f.AwaitHolders(t, 0, "kept")
}

// TestSilentTLS: a client beyond the limit, silent in its TLS handshake, holds up no other.
func TestSilentTLS(t *testing.T) {
	certified := httptest.NewTLSServer(nil)
	defer certified.Close()
	c := cluster.New(t, 1)
	server := frontend.New(frontend.Config{Client: c.Client, Limits: session.Limits{Clients: 1}})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() { _ = server.Serve(tls.NewListener(l, certified.TLS)) }()
	dial := func() *client {
		conn, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{InsecureSkipVerify: true})
		require.NoError(t, err)
		return &client{t: t, conn: conn}
	}
	one := dial()
	one.expect("PING => +PONG")
	silent, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer silent.Close()
	_, wire := server.Stats()
	testkit.Await(t, "the refusal", func() bool { return wire.Refused.Load() == 1 })
	require.NoError(t, one.conn.Close())
	testkit.Await(t, "the session ends", func() bool { return wire.Open.Load() == 0 })
	dial().expect("PING => +PONG")
	testkit.Within(t, testkit.Patience, "Stop", func() { server.Stop(t.Context()) })
}

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
		return !strings.HasPrefix(f.dial(t).ask("ECHO "+strings.Repeat("x", 600)), "$")
	})
	for range 100 {
		require.Equal(t, []string{"$0", "$1", "$2"}, other.pipeline(3, "PING %d"))
	}
	f.Heal(t)
	require.Equal(t, "+OK", c.receive())
	for range 1000 {
		c.receive()
	}
	c.expect("PING => +PONG")
	other.expect("PING => +PONG")
}

// TestManyScripts: a client with numbers in its scripts leaves room for the scripts of others, and displaces none that
// another client calls now and then.
func TestManyScripts(t *testing.T) {
	f := start(t, 1)
	a, b := f.dial(t), f.dial(t)
	called := strings.TrimPrefix(b.call("SCRIPT", "LOAD", release), "$")
	require.Equal(t, ":0", b.call("EVALSHA", called, "1", "k", "v"))
	for i := range 2500 {
		require.Regexp(t, `^\$[0-9a-f]{40}$`, a.call("SCRIPT", "LOAD", fmt.Sprint("return redis.call('pexpire', KEYS[1], ", i+1, ")")))
		if i%1000 == 0 {
			require.Equal(t, ":0", b.call("EVALSHA", called, "1", "k", "v"))
		}
	}
	b.sendWords([]string{"SCRIPT", "LOAD", "return redis.call('get', KEYS[1])"})
	require.Regexp(t, `^\$[0-9a-f]{40}$`, b.receive())
	require.Equal(t, ":0", b.call("EVALSHA", called, "1", "k", "v"))
}

// TestIdleConnections: an idle connection costs little memory.
func TestIdleConnections(t *testing.T) {
	f := startOn(t, cluster.New(t, 1))
	const n = 500
	before := used()
	for range n {
		c := f.dial(t)
		c.expect("PING => +PONG") // its client side is in this process, too
		c.buf, c.d = nil, resp.Decoder{}
	}
	require.Less(t, (used()-before)/n, uint64(10_000), "bytes for both ends of a connection")
}

// used returns the bytes of the heap and of stacks in use.
func used() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
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
		require.Equal(t, ":0", c.call("EVAL", text, "1", fmt.Sprint("k", i), "v"))
	}
	d := f.dial(t)
	d.expect("AUTH app secret => +OK\nSET k v NX PX 60000 => +OK")
	long := f.dial(t)
	require.Contains(t, long.call("PING", strings.Repeat("x", 40<<10)), "-ERR Protocol error")
	c.expect("GET k => $v")
}
