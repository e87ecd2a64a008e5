package redlock_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/testkit"
	"github.com/redlock-go/redlock/internal/testkit/cluster"
)

func TestMain(m *testing.M) { cluster.Main(m) }

// TestZeroLock is a handle on nothing.
func TestZeroLock(t *testing.T) {
	var l redlock.Lock
	require.Zero(t, l.Remaining())
	require.Empty(t, l.Key())
	require.Empty(t, l.Keys())
	require.Empty(t, l.Token())
	require.Equal(t, redlock.ErrNotHeld, l.Extend(t.Context(), time.Minute))
	require.Equal(t, redlock.ErrNotHeld, l.Release(t.Context()))
}

// TestErrorsAreDistinct: each is itself and none of the others, and its text
// says which it is.
func TestErrorsAreDistinct(t *testing.T) {
	all := map[string]error{
		"taken": redlock.ErrTaken, "no quorum": redlock.ErrNoQuorum, "expired": redlock.ErrExpired,
		"not held": redlock.ErrNotHeld, "closed": redlock.ErrClosed, "too many": redlock.ErrBusy,
		"wrong config": redlock.ErrConfig, "wrong argument": redlock.ErrArgument,
	}
	for a, first := range all {
		require.ErrorContains(t, first, a)
		require.True(t, strings.HasPrefix(first.Error(), "redlock: "))
		for b, second := range all {
			require.Equal(t, a == b, errors.Is(first, second))
		}
	}
}

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
		"NodeTimeout":      {redlock.Config{Nodes: nodes(1), NodeTimeout: -1}, "NodeTimeout is -1ns, want 0"},
		"Retry.Min":        {redlock.Config{Nodes: nodes(1), Retry: redlock.Retry{Min: -1}}, "Retry.Min is -1ns, want 0"},
		"Retry.Max":        {redlock.Config{Nodes: nodes(1), Retry: redlock.Retry{Max: -1}}, "Retry.Max is -1ns, want 0"},
		"Retry.Attempts":   {redlock.Config{Nodes: nodes(1), Retry: redlock.Retry{Attempts: -1}}, "Retry.Attempts is -1, want 0"},
		"Retry.Min, Max":   {redlock.Config{Nodes: nodes(1), Retry: redlock.Retry{Min: 2, Max: 1, Attempts: 3}}, "Retry.Min 2ns is above Retry.Max 1ns, lower Min or raise Max"},
		"no end, no pause": {redlock.Config{Nodes: nodes(1), Retry: redlock.Retry{Max: time.Microsecond}}, "Retry.Max is 1µs, which asks the nodes without a pause and without end: want 1ms or more, or a limit of Retry.Attempts"},
		"endless pause":    {redlock.Config{Nodes: nodes(1), Retry: redlock.Retry{Min: math.MaxInt64}}, "at most 8760h0m0s are allowed"},
		"DialTimeout":      {redlock.Config{Nodes: nodes(1), DialTimeout: -1}, "DialTimeout is -1ns, want 0"},
		"StallTimeout":     {redlock.Config{Nodes: nodes(1), StallTimeout: -1}, "StallTimeout is -1ns, want 0"},
		"MaxWaiting":       {redlock.Config{Nodes: nodes(1), MaxWaiting: -1}, "MaxWaiting is -1, want 0"},
	} {
		t.Run(name, func(t *testing.T) {
			client, err := redlock.New(c.cfg)
			require.ErrorContains(t, err, c.want)
			require.ErrorIs(t, err, redlock.ErrConfig)
			require.Nil(t, client)
			require.True(t, strings.HasPrefix(err.Error(), "redlock: config: "), "%v", err)
			require.NotContains(t, fmt.Sprintf("%v %+v %#v", err, err, err), "sesame")
		})
	}
}

// TestBadURLIsNeverShown: what makes an address unreadable is often a password
// that was not escaped, and then any part of the text may be one.
func TestBadURLIsNeverShown(t *testing.T) {
	var seen testkit.LogSink
	for _, node := range []string{
		"redis://:sesame 4711@host", "redis://:sesame/4711@host", "redis://:sesame#4711@host", "redis://:sesame?4711@host",
		"redis://:4711?sesame@host", "redis://:4711#sesame@host", "redis://me:4711?sesame@host", "redis://me:4711#sesame@host",
		"redis://me:4711/sesame@host", "redis://:sesame%zz4711@host", "redis://:se[same]4711@host", "sesame:4711@host",
		"redis:sesame@host:4711", "unix://:sesame@4711", "redis://host/sesame4711", "redis://host?password=sesame",
		"redis://host?sesame", "redis://host?db=sesame", "sesame://host", "redis://[sesame]:4711@host", ":sesame4711@host",
	} {
		c, err := redlock.New(redlock.Config{Nodes: []string{node}, DialTimeout: time.Millisecond})
		require.Error(t, err, node)
		require.Nil(t, c)
		require.NotContains(t, err.Error(), "4711")
		seen.Add(err)
	}
	seen.RequireNone(t, "sesame")
}
