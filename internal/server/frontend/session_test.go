package frontend_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/server/frontend"
	"github.com/redlock-go/redlock/internal/server/session"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// TestPipeline: commands of one connection run at the same time, commands on one key in their order. Replies keep the
// order too.
func TestPipeline(t *testing.T) {
	f := start(t, 3)
	c := f.dial(t)
	var lines, want []string
	for i := range 500 {
		key := fmt.Sprint("k", i%50)
		lines = append(lines, "SET "+key+" v NX PX 60000", "PING", "DELEX "+key+" IFEQ v")
		want = append(want, "+OK", "+PONG", ":1")
	}
	go c.send(lines...)
	for i := range want {
		require.Equal(t, want[i], c.Receive(), lines[i])
	}
}

// TestBlockedCommand: a waiting command holds its connection alone, and is woken by the release.
func TestBlockedCommand(t *testing.T) {
	f := start(t, 3)
	a, b := f.dial(t), f.dial(t)
	b.expect("SET lock:n v NX PX 60000 => +OK")
	lines := []string{"SET x v NX PX 60000", "BLPOP lock-signal:n 30"}
	for i := range 1000 {
		lines = append(lines, fmt.Sprint("SET k", i, " v NX PX 60000"))
	}
	a.send(lines...)
	require.Equal(t, "+OK", a.Receive())
	for range 10 {
		b.expect("GET k0 => nil")
	}
	b.expect("DELEX lock:n IFEQ v => :1")
	require.Equal(t, `*["lock-signal:n" "1"]`, a.Receive())
	for range 1000 {
		require.Equal(t, "+OK", a.Receive())
	}
	b.expect(`
		RL.WAIT lock:n 60000 => :1
		RL.WAIT k0 20 => :0
		BLPOP lock-signal:none 60 => *["lock-signal:none" "1"]
		SET lock:m v NX PX 60000 => +OK
		BLPOP lock-signal:m 0.02 => nil
	`)
}

// TestGone: an undeliverable grant to a departed client is released, however its end is noticed.
// Its delivered grants live on.
func TestGone(t *testing.T) {
	for name, commands := range map[string][]string{
		"read":   {"SET k v NX PX 60000", "RL.WAIT received 60000"}, // beside its commands
		"looked": {"SET k v NX PX 60000"},                           // at, when the nodes have answered
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t, 3)
			c := f.dial(t)
			c.expect("SET received v NX PX 60000 => +OK")
			f.Servers.Mute()
			c.send(commands...)
			f.AwaitHolders(t, 3, "k")
			require.NoError(t, c.Conn.Close())
			_, wire := f.Stats()
			if name != "looked" {
				testkit.Await(t, "the server notices", func() bool { return f.Client.Stats().Cleanups > 0 || wire.Open.Load() == 0 })
			}
			f.Heal(t)
			f.AwaitHolders(t, 0, "k")
			f.awaitOpen(t, 0)
			require.Equal(t, 3, f.Holders("received"))
		})
	}
}

// TestKeep: a lock with KEEP lives as long as its connection.
func TestKeep(t *testing.T) {
	f := start(t, 3)
	a, b := f.dial(t), f.dial(t)
	a.expect(`
		RL.LOCK k 60000 VALUE v KEEP => *["token" "v" "validity-ms" :6
		RL.LOCK plain 60000 VALUE v => *["token" "v" "validity-ms" :6
	`)
	b.expect(`
		RL.LOCK k 60000 => nil
		RL.LOCK k 60000 WAIT 20 => nil
		GET k => "v"
	`)
	startOn(t, f.Cluster).dial(t).expect("RL.LOCK k 60000 WAIT 20 => nil")
	require.Equal(t, 1, f.Client.Stats().KeptAlive)
	require.NoError(t, a.Conn.Close())
	b.expect(`RL.LOCK k 60000 WAIT 30000 VALUE w => *["token" "w"`)
	b.expect(`
		RL.EXTEND k w 120000 => :120000
		RL.EXTEND k v 120000 => nil
		RL.UNLOCK k v => :0
		RL.UNLOCK k w => :1
		RL.UNLOCK plain v => :1
		RL.FENCE k w => -ERR there are no fencing tokens
		RL.LOCK k 0 => -ERR
		RL.LOCK k 1000 MAYBE => -ERR syntax error
		RL.INSPECT k => *[*["node"
	`)
}

// TestSharedLocks: readers share a lock, each by a value of its own, and a writer waits for the last of them.
func TestSharedLocks(t *testing.T) {
	f := start(t, 3)
	a, b, elsewhere := f.dial(t), f.dial(t), startOn(t, f.Cluster).dial(t)
	a.expect(`
		RL.LOCK k 60000 VALUE a SHARED => *["token" "a" "validity-ms" :6
		RL.LOCK k 60000 VALUE a SHARED => -ERR
		RL.LOCK k 60000 shared VALUE kept KEEP => *["token" "kept"
	`)
	elsewhere.expect(`
		RL.LOCK k 60000 VALUE a SHARED => *["token" "a"
		SET k v NX PX 60000 => nil
		EXISTS k => :1
		GET k => "(shared lock)"
		DEL k => -ERR
		TTL k => ~61
		RL.UNLOCK k kept => :0
		RL.UNLOCK k a => :1
		RL.UNLOCK k a => :0
	`)
	require.Equal(t, ":0", elsewhere.DoWords("DELEX", "k", "IFEQ", "(shared lock)"))
	b.expect(`
		RL.LOCK k 60000 VALUE w => nil
		RL.EXTEND k a 120000 => :120000
		RL.EXTEND k b 120000 => nil
		RL.UNLOCK k a => :1
		RL.LOCK k 60000 VALUE w WAIT 20 => nil
	`)
	require.NoError(t, a.Conn.Close())
	b.expect(`
		RL.LOCK k 60000 WAIT 30000 VALUE w => *["token" "w"
		RL.LOCK k 60000 SHARED => nil
		RL.UNLOCK k w => :1
	`)
}

// TestFences: RL.FENCE shows the fencing token of a lock by its value, also of one granted by SET. Each grant has a larger
// one.
func TestFences(t *testing.T) {
	const ttl = time.Second // that the masters' first votes wait for
	c := cluster.New(t, 3, func(c *redlock.Config) { c.Fenced, c.MaxTTL = true, ttl })
	require.NoError(t, c.InitFencing(t.Context()))
	a := startOn(t, c, func(c *frontend.Config) { c.Fenced, c.NoTTL = true, ttl*3/4 }).dial(t)
	a.expect("SET k v NX => +OK\nRL.FENCE k w => nil")
	first := a.Do("RL.FENCE k v")
	a.expect("DEL k => :1\nRL.FENCE k v => nil")
	granted, second := a.Do("RL.LOCK k 750 VALUE v KEEP"), a.Do("RL.FENCE k v")
	require.Contains(t, granted, `"fence" `+second)
	require.Greater(t, second, first) // of as many digits
}

// TestStop: at the end waits end, commands under way are answered, and locks with KEEP are released.
func TestStop(t *testing.T) {
	f := start(t, 3)
	a, other := f.dial(t), startOn(t, f.Cluster)
	a.expect(`RL.LOCK lock:kept 60000 KEEP => *["token"`)
	var waiting []*client
	for _, wait := range []string{"RL.WAIT lock:kept 60000", "RL.LOCK lock:kept 60000 WAIT 60000", "BLPOP lock-signal:kept 60"} {
		waiting = append(waiting, other.dial(t))
		waiting[len(waiting)-1].send(wait, "PING")
	}
	_, wire := other.Stats()
	testkit.Await(t, "all commands but PING", func() bool { return wire.Commands.Load() == 3 && f.Client.Stats().Acquire.Denied > 0 })
	other.Stop(t.Context())
	for _, c := range waiting { // an answer would say that the time is over
		require.Contains(t, c.Receive(), "-ERR the connection ends")
		require.Equal(t, "closed", c.Receive())
	}

	f.Servers.Mute()
	a.send("SET k v NX PX 60000")
	f.AwaitHolders(t, 3, "k")
	stopped := testkit.Start(func() error { f.Stop(context.Background()); return nil })
	testkit.Await(t, "it ends", func() bool {
		c, err := net.Dial("tcp", f.addr)
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	})
	f.Heal(t)
	require.Equal(t, "+OK", a.Receive())
	require.Equal(t, "closed", a.Receive())
	testkit.Get(t, stopped)
	f.AwaitHolders(t, 0, "lock:kept")
	require.Equal(t, 3, f.Holders("k"))
}

// TestBounds: input beyond a bound gets an error, and harms no other client.
func TestBounds(t *testing.T) {
	f := start(t, 1, func(c *frontend.Config) {
		c.Limits = session.Limits{Clients: 2, Memory: 300 << 10, Write: 100 * time.Millisecond}
	})
	a, b := f.dial(t), f.dial(t)
	a.expect("PING => +PONG")
	b.expect("PING => +PONG")
	require.Equal(t, "-ERR max number of clients reached", f.dial(t).Receive())

	_, err := b.Conn.Write([]byte("*3\r\n$3\r\nSET\r\n$9223372036854775807\r\n"))
	require.NoError(t, err)
	require.Equal(t, "-ERR Protocol error: bulk too long", b.Receive())
	require.Equal(t, "closed", b.Receive())
	f.awaitOpen(t, 1)

	b = f.dial(t)
	b.expect("ECHO " + strings.Repeat("x", 64<<10) + ` => "xxx`)
	b.send("ECHO " + strings.Repeat("x", 60<<10) + " " + strings.Repeat("x", 60<<10) + " " + strings.Repeat("x", 60<<10))
	require.Contains(t, b.Receive(), "-ERR Protocol error: too big command")
	f.awaitOpen(t, 1)

	// A client that receives nothing is cut off, and an endless sender waits meanwhile.
	b = f.dial(t)
	big := "*2\r\n$4\r\nECHO\r\n$60000\r\n" + strings.Repeat("x", 60000) + "\r\n"
	for err == nil {
		_ = b.Conn.SetWriteDeadline(time.Now().Add(testkit.Patience))
		_, err = b.Conn.Write([]byte(big))
	}
	f.awaitOpen(t, 1)
	a.expect("PING => +PONG")
	for _, bad := range []string{"*1\r\n$-1\r\n", "POST / HTTP/1.1\r\n"} {
		b = f.dial(t)
		b.Send(bad)
		if got := b.Receive(); got != "closed" {
			require.Contains(t, got, "-ERR Protocol error", bad)
		}
		_ = b.Conn.Close()
		f.awaitOpen(t, 1)
	}
}

// TestReload: connections and their locks stay. Only those of a user that is gone or has another prefix end, even if
// logged in at the same moment.
func TestReload(t *testing.T) {
	f := start(t, 3, withUsers(t, "stays pw s:\nchanges pw c:\ngoes pw g:\nmoves pw m:\n"))
	locked := map[string]*client{}
	for _, user := range []string{"stays", "changes", "goes", "moves"} {
		locked[user] = f.dial(t)
		locked[user].expect("AUTH " + user + " pw => +OK")
		require.Equal(t, `*["`, locked[user].Do("RL.LOCK k 60000 KEEP")[:3])
	}
	stranger := f.dial(t)
	reload := func(users string) {
		var later frontend.Config
		withUsers(t, users)(&later)
		f.Reload(later.Users, nil)
	}
	for range 60 { // a login at the same moment as a reload is a matter of chance
		reload("stays pw s:\nchanges pw c:\ngoes pw g:\nmoves pw m:\nbrief pw b:\n")
		var in [100]*client // that log in one by one as the user that goes again
		for i := range in {
			in[i] = f.dial(t)
		}
		var logins atomic.Int32
		var all sync.WaitGroup
		all.Go(func() {
			for _, c := range in {
				if c.Do("AUTH brief pw") != "+OK" {
					return
				}
				logins.Add(1)
			}
		})
		testkit.Await(t, "logins", func() bool { return logins.Load() > 20 })
		reload("stays pw s:\nchanges pw c:\ngoes pw g:\nmoves pw m:\n")
		all.Wait()
		for _, c := range in[:logins.Load()] {
			require.Equal(t, "closed", c.Receive(), "of a user that is gone")
		}
		for _, c := range in[logins.Load():] { // too many strangers would end the first
			_ = c.Conn.Close()
		}
	}
	reload("stays pw s:\nchanges new c:\nmoves pw other:\n")
	for _, user := range []string{"goes", "moves"} {
		require.Equal(t, "closed", locked[user].Receive())
	}
	locked["stays"].expect(`GET k => "`)
	locked["changes"].expect(`
		GET k => "
		AUTH changes pw => -WRONGPASS
		AUTH changes new => +OK
	`)
	stranger.expect("AUTH goes pw => -WRONGPASS\nAUTH moves pw => +OK\nGET k => nil")
	testkit.Await(t, "its lock is released", func() bool { return len(f.Servers[0].Keys()) == 2 })
	require.ElementsMatch(t, []string{"s:k", "c:k"}, f.Servers[0].Keys())
}
