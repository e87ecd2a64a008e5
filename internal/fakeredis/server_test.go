package fakeredis

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/script"
)

// eventually waits for something that must happen.
func eventually(t *testing.T, condition func() bool) {
	t.Helper()
	require.Eventually(t, condition, patience, time.Millisecond)
}

func TestServerCanBeLookedInto(t *testing.T) {
	s := StartN(t, 1)[0]
	c := dial(t, "tcp", s.Addr())
	require.Equal(t, "+OK", c.do("SET k v PX 100000"))
	require.Equal(t, "+OK", c.do("set forever v"))
	require.Equal(t, "+OK", c.do("SELECT 1"))
	require.Equal(t, "+OK", c.do("SET elsewhere v"))

	value, ok := s.Get("k")
	assert.True(t, ok)
	assert.Equal(t, "v", value)
	_, ok = s.Get("elsewhere")
	assert.False(t, ok, "that is another database")
	assert.InDelta(t, 100*time.Second, s.TTL("k"), float64(10*time.Second))
	assert.Equal(t, NoTTL, s.TTL("forever"))
	assert.Equal(t, NoKey, s.TTL("nothing"))
	assert.ElementsMatch(t, []string{"k", "forever", "elsewhere"}, s.Keys())
	assert.Equal(t, 3, s.Len())
	assert.Equal(t, map[string]int64{"SET": 3, "SELECT": 1}, s.Commands())
	assert.EqualValues(t, 3, s.Count("set"))
	assert.Equal(t, 1, s.Conns())
	assert.Len(t, s.RunID(), 40)

	s.Set("planted", "v", 50*time.Second)
	s.Del("k", "nothing")
	s.Plant("foreign", "list")
	require.Equal(t, "+OK", c.do("SELECT 0"))
	assert.Equal(t, `*[nil "v" nil]`, c.do("MGET k planted foreign"))
	assert.Equal(t, "+list", c.do("TYPE foreign"))
	s.Flush()
	assert.Zero(t, s.Len())
	assert.Equal(t, "+OK", c.do("QUIT"))
	eventually(t, func() bool { return s.Conns() == 0 })
}

func TestKeysExpireByTheClockGiven(t *testing.T) {
	var now atomic.Int64
	now.Store(1_000_000)
	s := StartN(t, 1, Options{Now: func() time.Time { return time.UnixMilli(now.Load()) }})[0]
	c := dial(t, "tcp", s.Addr())
	require.Equal(t, "+OK", c.do("SET k v PX 100"))
	assert.Equal(t, ":100", c.do("PTTL k"))
	now.Add(100)
	assert.Equal(t, `"v"`, c.do("GET k"), "there in its last millisecond")
	assert.Equal(t, ":0", c.do("PTTL k"))
	now.Add(1)
	assert.Equal(t, 0, s.Len())
	assert.Equal(t, "nil", c.do("GET k"))
	assert.Equal(t, `*["1000" "101000"]`, c.do("TIME"))
}

func TestAnotherUserSwitchesTheDefaultOff(t *testing.T) {
	s := StartN(t, 1, Options{User: "app", Password: "secret"})[0]
	c := dial(t, "tcp", s.Addr())
	assert.Contains(t, c.do("PING"), "-NOAUTH")
	assert.Contains(t, c.do("AUTH secret"), "-WRONGPASS")
	assert.Contains(t, c.do("AUTH default secret"), "-WRONGPASS")
	assert.Equal(t, "+OK", c.do("AUTH app secret"))
	assert.Equal(t, "+PONG", c.do("PING"))
}

func TestScriptsCanBeForbidden(t *testing.T) {
	s := StartN(t, 1, Options{Flavor: Valkey9})[0]
	s.DenyScripts()
	c := dial(t, "tcp", s.Addr())
	for _, line := range []string{"EVAL x 0", "EVALSHA x 0", "SCRIPT LOAD x", "SCRIPT EXISTS x"} {
		assert.Contains(t, c.do(line), "-NOPERM")
	}
	s.Allow("EVALSHA")
	assert.Contains(t, c.do("EVALSHA x 0"), "-NOSCRIPT")
}

func TestKeysCanBeForbidden(t *testing.T) {
	for _, flavor := range []Flavor{Redis7, Valkey9, Redis84} {
		s := StartN(t, 1, Options{Flavor: flavor})[0]
		s.LoadScripts()
		s.AllowKeys("lk:")
		c := dial(t, "tcp", s.Addr())
		release := "EVALSHA " + script.ReleaseSHA1
		for _, line := range []string{"SET k v", "GET k", "DEL lk:a k", release + " 2 lk:a k t t"} {
			answer := c.do(line)
			assert.Contains(t, answer, "-NOPERM", line)
			assert.Contains(t, answer, " key", line)
		}
		for _, line := range []string{"SET lk:a v", "GET lk:a", "DEL lk:a lk:b", release + " 1 lk:a k", release + " 9 lk:a", "PING"} {
			assert.NotContains(t, c.do(line), "-NOPERM", line)
		}
		s.AllowKeys("")
		assert.Equal(t, "+OK", c.do("SET k v"))
	}
}

func TestReplicasAndClusters(t *testing.T) {
	s := StartN(t, 1, Options{Mode: "cluster", Flavor: Valkey9})[0]
	s.LoadScripts()
	s.Set("k", "v", 0)
	c := dial(t, "tcp", s.Addr())
	assert.Contains(t, c.do("INFO server"), "server_mode:cluster")
	assert.Contains(t, c.do("HELLO"), `"mode" "cluster" "role" "master"`)
	s.Demote()
	assert.Contains(t, c.do("INFO replication"), "role:slave")
	assert.Contains(t, c.do("HELLO"), `"role" "replica"`)
	assert.Contains(t, c.do("ROLE"), `"slave"`)
	for _, line := range []string{"SET k v", "DEL k", "DELIFEQ k v", "EVALSHA " + script.ReleaseSHA1 + " 1 k v"} {
		assert.Contains(t, c.do(line), "-READONLY", line)
	}
	assert.Equal(t, `"v"`, c.do("GET k"))
	assert.Equal(t, "*[:0]", c.do("EVALSHA "+script.ReleaseSHA1+" 1 k another"))
	s.Promote()
	assert.Equal(t, ":1", c.do("DEL k"))
	assert.Contains(t, c.do("ROLE"), `"master"`)
}

func TestConfigurationCanBeGiven(t *testing.T) {
	s := StartN(t, 1, Options{Config: map[string]string{"maxmemory-policy": "allkeys-lru"}})[0]
	c := dial(t, "tcp", s.Addr())
	assert.Equal(t, `*["maxmemory-policy" "allkeys-lru"]`, c.do("CONFIG GET maxmemory-policy"))
	assert.Contains(t, c.do("INFO memory"), "maxmemory_policy:allkeys-lru")
}

func TestHookSeesCommandsBeforeTheyRun(t *testing.T) {
	s := StartN(t, 1)[0]
	reached, proceed := make(chan []string), make(chan struct{})
	s.OnCommand(func(conn int64, args []string) {
		assert.EqualValues(t, 1, conn)
		reached <- args
		<-proceed
	})
	c := dial(t, "tcp", s.Addr())
	c.send(encode("SET", "k", "v"))
	assert.Equal(t, []string{"SET", "k", "v"}, <-reached)
	assert.Zero(t, s.Len(), "not yet, and the server is not locked")
	s.OnCommand(nil)
	close(proceed)
	assert.Equal(t, "+OK", c.receive())
	assert.Equal(t, `"v"`, c.do("GET k"))
}

func TestPipelinesOfManyConnections(t *testing.T) {
	s := StartN(t, 1)[0]
	s.LoadScripts()
	var clients sync.WaitGroup
	for i := range 8 {
		c := dial(t, "tcp", s.Addr())
		commands, want := lockRound(string(rune('a' + i)))
		clients.Add(1)
		go func() {
			defer clients.Done()
			replies := make([]byte, len(want))
			for range 50 {
				// In two pieces, wherever that cuts.
				_, err := c.nc.Write(commands[:i*500])
				assert.NoError(t, err)
				assert.NoError(t, exchange(c.nc, commands[i*500:], replies, want))
			}
		}()
	}
	clients.Wait()
	assert.Zero(t, s.Len())
	assert.EqualValues(t, 8*50*pipelined, s.Count("SET"))
	assert.EqualValues(t, 8*50, s.Count("EVALSHA"))
}

func TestUnixSocket(t *testing.T) {
	dir, err := os.MkdirTemp("", "") // t.TempDir may be too long for a socket
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := StartN(t, 1, Options{Addr: filepath.Join(dir, "redis.sock")})[0]
	assert.Equal(t, "unix", s.Network())
	assert.Equal(t, "+PONG", dial(t, "unix", s.Addr()).do("PING"))
	s.Down()
	_, err = net.Dial("unix", s.Addr())
	require.Error(t, err)
	require.NoError(t, s.Heal())
	c := dial(t, "unix", s.Addr())
	assert.Contains(t, c.do("INFO server"), "tcp_port:0")
}

func TestTLS(t *testing.T) {
	s := StartN(t, 1, Options{TLS: selfSigned(t)})[0]
	connect := func() *client {
		nc, err := tls.Dial("tcp", s.Addr(), &tls.Config{InsecureSkipVerify: true})
		require.NoError(t, err)
		return newClient(t, nc)
	}
	c := connect()
	assert.Equal(t, "+PONG", c.do("PING"))
	s.Hang()
	c.send(encode("ECHO", "hi"))
	c.silent()
	require.NoError(t, s.Heal())
	assert.Equal(t, `"hi"`, c.receive())
	s.ResetMidReply("ECHO", 1)
	c.send(encode("ECHO", "hi"))
	assert.Equal(t, "reset", c.receive())

	s.Hang()
	shaken := make(chan error)
	nc, err := net.Dial("tcp", s.Addr())
	require.NoError(t, err)
	c = newClient(t, tls.Client(nc, &tls.Config{InsecureSkipVerify: true}))
	go func() { shaken <- c.nc.(*tls.Conn).Handshake() }()
	select {
	case err := <-shaken:
		require.Fail(t, "a frozen server shakes hands", "%v", err)
	case <-time.After(30 * time.Millisecond):
	}
	require.NoError(t, s.Heal())
	require.NoError(t, <-shaken)
	assert.Equal(t, "+PONG", c.do("PING"))
	assert.Equal(t, "+PONG", connect().do("PING"))
}

// selfSigned is the configuration of a server that nobody need trust.
func selfSigned(t *testing.T) *tls.Config {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
}

func TestStartTellsWhyItFailed(t *testing.T) {
	s := StartN(t, 1)[0]
	_, err := Start(Options{Addr: s.Addr()})
	assert.Error(t, err)
	require.NoError(t, s.Close())
	assert.ErrorIs(t, s.Heal(), net.ErrClosed)
	require.NoError(t, s.Close(), "twice is fine")
}
