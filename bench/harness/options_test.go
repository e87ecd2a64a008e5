package harness

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/bench/render"
	"github.com/redlock-go/redlock/internal/test/realredis"
)

var testProgram = Program{
	Drivers: []Driver{&still{name: "redlock"}, &still{name: "floor"}},
	Chosen:  []string{"redlock", "floor"},
	Suite:   Suite{Sections: []Section{{Name: "one"}, {Name: "two"}}},
}

func parse(args ...string) (Options, error) { return ParseOptions(args, testProgram, io.Discard) }

// TestWhichServers: flags and the program decide whether real ones are started.
func TestWhichServers(t *testing.T) {
	for _, c := range []struct {
		real, want bool
		args       []string
	}{
		{false, false, nil},
		{true, true, nil},
		{false, true, []string{"-redis"}},
		{false, true, []string{"-redis", "-server", "valkey9"}},
		{true, false, []string{"-nodes", "a:1"}},
	} {
		o, err := ParseOptions(c.args, Program{Real: c.real}, io.Discard)
		require.NoError(t, err)
		require.Equal(t, c.want, o.Redis, "%v %v", c.real, c.args)
		require.Equal(t, len(c.args) == 3, o.Server == realredis.Valkey9)
	}
}

// TestBadOptions: an error names the flag, and what was given.
func TestBadOptions(t *testing.T) {
	for _, c := range []struct {
		flag, given string
		args        []string
	}{
		{"-c", `"0"`, []string{"-c", "1,0"}},
		{"-c", `empty`, []string{"-c", "1,,2"}},
		{"-c", `"8" is there twice`, []string{"-c", "8,8"}},
		{"-driver", `"what" is none of redlock,floor`, []string{"-driver", "what"}},
		{"-server", `"sql" is none of`, []string{"-server", "sql"}},
		{"-suite", `"none" is none of all,one,two`, []string{"-suite", "none"}},
		{"-d", `"0"`, []string{"-d", "0"}},
		{"-warmup", `"-1s"`, []string{"-warmup", "-1s"}},
		{"-rounds", `1,2`, []string{"-rounds", "1,2"}},
		{"-keylen", `"3"`, []string{"-keylen", "3"}},
		{"-nodes", `"a"`, []string{"-nodes", "a"}},
		{"-nodes", `"a:1" is there twice`, []string{"-nodes", "a:1,a:1"}},
		{"-n and -nodes", ``, []string{"-n", "3", "-nodes=a:1"}},
		{"-nodes and -redis", ``, []string{"-nodes", "a:1", "-redis"}},
		{"-redis", `-server embedded`, []string{"-server", "embedded", "-redis"}},
		{"-frobnicate", ``, []string{"-frobnicate"}},
		{`"more"`, ``, []string{"more"}},
	} {
		var stdout, stderr bytes.Buffer
		require.Equal(t, 2, testProgram.Main(c.args, &stdout, &stderr), "%v", c.args)
		require.Contains(t, stderr.String(), c.flag)
		require.Contains(t, stderr.String(), c.given)
		require.Empty(t, stdout.String())
	}
	var out bytes.Buffer
	require.Zero(t, testProgram.Main([]string{"-h"}, &out, io.Discard))
	require.Contains(t, out.String(), "-cpuprofile file")
}

func TestCells(t *testing.T) {
	o, err := parse("-c", "8", "-scenario", "contended", "-n", "3,5", "-rtt", "0s,1ms", "-jitter", "100us", "-fault", "none,slow", "-keylen", "64", "-gomaxprocs", "2", "-procs", "4", "-hold", "1ms", "-keys", "100")
	require.NoError(t, err)
	var titles []string
	for _, c := range o.cells() {
		titles = append(titles, render.Title(c))
	}
	require.Len(t, titles, 8)
	require.Equal(t, []string{
		"contended, concurrency 8, 3 nodes, keys of 64 bytes, GOMAXPROCS 2, 4 processes, 100 keys, hold 1ms",
		"contended, concurrency 8, 3 nodes, jitter 100µs, node 1 slow (+20ms), keys of 64 bytes, GOMAXPROCS 2, 4 processes, 100 keys, hold 1ms",
		"contended, concurrency 8, 3 nodes, round trip +1ms, jitter 100µs, keys of 64 bytes, GOMAXPROCS 2, 4 processes, 100 keys, hold 1ms",
	}, titles[:3])
}
