package redlock_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/fakeredis"
)

// TestConfigErrors: what is wrong with a Config is named, by field or by node,
// and no password is in it.
func TestConfigErrors(t *testing.T) {
	nodes := func(n int) (list []string) {
		for i := range n {
			list = append(list, fmt.Sprintf("redis://:sesame@10.0.0.1:%d", 7000+i))
		}
		return list
	}
	node := func(bad string) redlock.Config {
		return redlock.Config{Nodes: []string{"10.0.0.1", bad, "10.0.0.3"}}
	}
	for name, c := range map[string]struct {
		cfg  redlock.Config
		want string
	}{
		"no nodes":         {redlock.Config{}, "0 nodes, want 1 to 64"},
		"too many nodes":   {redlock.Config{Nodes: nodes(65)}, "65 nodes, want 1 to 64"},
		"empty":            {node(""), "node 1: address is empty"},
		"no scheme":        {node("me:sesame@10.0.0.2:6379"), "node 1: address is neither"},
		"space":            {node("10.0.0.2 :6379"), "node 1: address is neither"},
		"wrong scheme":     {node("http://me:sesame@10.0.0.2"), "node 1: address scheme"},
		"not a URL":        {node("redis://me:sesame%zz@10.0.0.2"), "node 1: address is not a valid URL"},
		"no host":          {node("redis://:sesame@:6379"), "node 1: address has no host"},
		"port 0":           {node("10.0.0.2:0"), "node 1: address port"},
		"port too high":    {node("redis://:sesame@10.0.0.2:65536"), "node 1: address port"},
		"port no number":   {node("10.0.0.2:redis"), "node 1: address port"},
		"bare IPv6 + port": {node("fe80::1::6379"), "node 1: address host and port"},
		"database":         {node("redis://:sesame@10.0.0.2/x"), "node 1: address database"},
		"database < 0":     {node("redis://:sesame@10.0.0.2/-1"), "node 1: address database"},
		"option":           {node("redis://:sesame@10.0.0.2?timeout=1s"), "node 1: address"},
		"socket":           {node("unix://:sesame@run/redis.sock"), "node 1: unix address"},
		"twice":            {node("10.0.0.1:6379"), "nodes 0 and 1 are both 10.0.0.1:6379"},
		"twice, password":  {node("redis://me:sesame@10.0.0.3"), "nodes 1 and 2 are both 10.0.0.3:6379"},
		"twice, database":  {node("redis://:sesame@10.0.0.1/7"), "nodes 0 and 1 are both"},
		"twice, case":      {redlock.Config{Nodes: []string{"db.example.org", "redis://:sesame@DB.Example.Org:6379"}}, "nodes 0 and 1 are both"},
		"twice, IPv6":      {node("[::ffff:10.0.0.1]:6379"), "nodes 0 and 1 are both"},
		"twice, socket":    {redlock.Config{Nodes: []string{"unix:///a", "b", "unix://:sesame@/a"}}, "nodes 0 and 2 are both /a"},
		"NodeTimeout":      {redlock.Config{Nodes: nodes(1), NodeTimeout: -1}, "NodeTimeout is negative"},
		"RetryMin":         {redlock.Config{Nodes: nodes(1), RetryMin: -1}, "RetryMin is negative"},
		"RetryMax":         {redlock.Config{Nodes: nodes(1), RetryMax: -1}, "RetryMax is negative"},
		"RetryMin, max":    {redlock.Config{Nodes: nodes(1), RetryMin: 2, RetryMax: 1}, "RetryMin 2ns is above RetryMax 1ns"},
		"DialTimeout":      {redlock.Config{Nodes: nodes(1), DialTimeout: -1}, "DialTimeout is negative"},
		"StallTimeout":     {redlock.Config{Nodes: nodes(1), StallTimeout: -1}, "StallTimeout is negative"},
		"CloseTimeout":     {redlock.Config{Nodes: nodes(1), CloseTimeout: -1}, "CloseTimeout is negative"},
		"MaxWaiting":       {redlock.Config{Nodes: nodes(1), MaxWaiting: -1}, "MaxWaiting"},
		"MaxInFlight":      {redlock.Config{Nodes: nodes(1), MaxInFlight: -1}, "MaxInFlight"},
	} {
		t.Run(name, func(t *testing.T) {
			client, err := redlock.New(c.cfg)
			require.ErrorContains(t, err, c.want)
			require.Nil(t, client)
			require.True(t, strings.HasPrefix(err.Error(), "redlock: config: "), "%v", err)
			require.NotContains(t, fmt.Sprintf("%v %+v %#v", err, err, err), "sesame")
		})
	}
}

// TestConfigDefaults: a Config needs nothing but nodes, and a RetryMin above
// the default of RetryMax is no mistake.
func TestConfigDefaults(t *testing.T) {
	servers := fakeredis.StartN(t, 3)
	nodes := fakeredis.Addrs(servers)
	for _, cfg := range []redlock.Config{{Nodes: nodes}, {Nodes: nodes, RetryMin: time.Second}} {
		c, err := redlock.New(cfg)
		require.NoError(t, err)
		l, err := c.Acquire(t.Context(), "k", 10*time.Second)
		require.NoError(t, err)
		require.Greater(t, l.Remaining(), time.Second)
		require.NoError(t, c.Close())
		for _, s := range servers {
			s.Flush()
		}
	}
}

// TestNodeTimeoutDefault: unless it is set, it follows from the TTL.
func TestNodeTimeoutDefault(t *testing.T) {
	r := newRig(t, 1, nodeTimeout(0))
	r.servers[0].Hang()
	for given, want := range map[time.Duration]time.Duration{
		10 * time.Second:       50 * time.Millisecond, // of 500
		400 * time.Millisecond: 20 * time.Millisecond,
	} {
		start := time.Now()
		_, err := r.TryAcquire(t.Context(), "k", given)
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		require.GreaterOrEqual(t, time.Since(start), want)
	}
}

// TestEvenNumberIsWarnedAbout, and only that.
func TestEvenNumberIsWarnedAbout(t *testing.T) {
	for n := 1; n <= 6; n++ {
		var log bytes.Buffer
		c, err := redlock.New(redlock.Config{
			Nodes:       fakeredis.Addrs(fakeredis.StartN(t, n)),
			NodeTimeout: patience,
			DialTimeout: patience,
			Logger:      slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})),
		})
		require.NoError(t, err)
		require.NoError(t, mustAcquire(t, c, "k", ttl).Release(t.Context()), "it works all the same")
		require.NoError(t, c.Close())
		if n%2 == 1 {
			require.Empty(t, log.String())
			continue
		}
		require.Contains(t, log.String(), "level=WARN")
		require.Contains(t, log.String(), fmt.Sprintf("nodes=%d quorum=%d", n, n/2+1))
		require.Equal(t, 1, strings.Count(log.String(), "\n"))
	}
}

// TestSameServerIsRefused: two addresses that lead to one server are found out
// by asking it who it is.
func TestSameServerIsRefused(t *testing.T) {
	onBothPaths(t, func(t *testing.T, portable bool) {
		servers := fakeredis.StartN(t, 3, fakeredis.Options{Password: "sesame"})
		_, port, err := net.SplitHostPort(servers[1].Addr())
		require.NoError(t, err)
		for name, alias := range map[string]string{
			"another name":     "localhost:" + port,
			"another listener": forward(t, servers[1].Addr()),
		} {
			t.Run(name, func(t *testing.T) {
				var nodes []string
				for _, addr := range append(fakeredis.Addrs(servers), alias) {
					nodes = append(nodes, "redis://:sesame@"+addr)
				}
				c, err := redlock.New(redlock.Config{Nodes: nodes, Portable: portable, DialTimeout: patience})
				require.Nil(t, c)
				require.ErrorIs(t, err, conn.ErrSameServer)
				require.ErrorContains(t, err, "same server as another node")
				// Whichever of the two came second is refused, and names the first.
				require.Contains(t, err.Error(), servers[1].Addr())
				require.Contains(t, err.Error(), alias)
				require.NotContains(t, err.Error(), "sesame")
			})
		}
		for _, s := range servers {
			await(t, "the refused client is gone", func() bool { return s.Conns() == 0 })
		}
	})
}

// forward opens a second door to a server.
func forward(t *testing.T, to string) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = ln.Close() })
	go func() {
		for {
			from, err := ln.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			back, err := net.Dial("tcp", to)
			if err != nil {
				_ = from.Close()
				continue
			}
			pipe := func(a, b net.Conn) {
				_, _ = b.(*net.TCPConn).ReadFrom(a)
				_ = a.Close()
				_ = b.Close()
			}
			go pipe(from, back)
			go pipe(back, from)
		}
	}()
	return ln.Addr().String()
}

// TestNewWaitsForNobodyLongerThanDialTimeout: a node that is down, or hangs, is
// no error, and is there once it answers.
func TestNewWaitsForNobodyLongerThanDialTimeout(t *testing.T) {
	onBothPaths(t, func(t *testing.T, portable bool) {
		servers := startN(t, 3)
		servers[0].Down()
		servers[1].Hang()
		r := newRigOf(t, servers, portably(portable), func(c *redlock.Config) { c.DialTimeout = 100 * time.Millisecond })
		_, err := r.TryAcquire(t.Context(), "k", ttl)
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		r.heal(t)
		r.awaitUp(t)
	})
}
