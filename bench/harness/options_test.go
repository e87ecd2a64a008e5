package harness

import (
	"bytes"
	"flag"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/realredis"
)

var testProgram = Program{
	Drivers: []Driver{&still{name: "redlock"}, &still{name: "redlock-portable"}, &still{name: "redlock-scripted"}, &still{name: "floor"}},
	Chosen:  []string{"redlock", "floor"},
	Report:  func(string, *Run) error { return nil },
	Suite:   Suite{Sections: []Section{{Name: "all"}, {Name: "some"}}},
}

func parse(args ...string) (Options, error) { return ParseOptions(args, testProgram, io.Discard) }

func TestOptionsByDefault(t *testing.T) {
	o, err := parse()
	require.NoError(t, err)
	require.Equal(t, Options{
		Masters:     []int{5},
		Concurrency: []int{1, 8, 64, 512},
		Timing:      Timing{Warmup: 500 * time.Millisecond, Window: 3 * time.Second},
		Rounds:      1,
		Scenarios:   []Scenario{Uncontended, Hot},
		Drivers:     []string{"redlock", "floor"},
		TTL:         10 * time.Second,
		KeyLen:      []int{24},
	}, o)
}

func TestOptionsGiven(t *testing.T) {
	o, err := parse("-nodes", "a:1, b:2", "-c", "3,1,3", "-d", "1s", "-warmup", "0", "-rounds", "5", "-scenario", "hot",
		"-driver", "floor,redlock", "-portable", "-ttl", "2s", "-keylen", "40", "-json", "-cpuprofile", "x",
		"-rtt", "0s,1ms", "-jitter", "2ms", "-fault", "none,slow", "-procs", "1,2", "-report", "dir")
	require.NoError(t, err)
	require.Equal(t, Options{
		Nodes:       []string{"a:1", "b:2"},
		Masters:     []int{5},
		Concurrency: []int{3, 1},
		Timing:      Timing{Window: time.Second},
		Rounds:      5,
		Scenarios:   []Scenario{Hot},
		Drivers:     []string{"floor", "redlock-portable"},
		TTL:         2 * time.Second,
		KeyLen:      []int{40},
		JSON:        true,
		CPUProfile:  "x",
		RTT:         []time.Duration{0, time.Millisecond},
		Jitter:      2 * time.Millisecond,
		Faults:      []Fault{NoFault, Slow},
		Procs:       []int{1, 2},
		Report:      "dir",
	}, o)
	o, err = parse("-scripted", "-server", "redis8", "-apart", "-suite", "dir", "-only", "some")
	require.NoError(t, err)
	require.Equal(t, []string{"redlock-scripted", "floor"}, o.Drivers)
	require.Equal(t, realredis.Redis8, o.Server)
	require.True(t, o.Redis && o.Apart)
	require.Equal(t, "dir", o.Suite)
	require.Equal(t, []string{"some"}, o.Only)
	for _, c := range []struct {
		real, want bool
		args       []string
	}{
		{false, false, nil},
		{true, true, nil},
		{false, true, []string{"-redis"}},
		{true, false, []string{"-embedded"}},
		{true, false, []string{"-redis=false"}},
		{true, false, []string{"-nodes", "a:1"}},
	} {
		o, err := ParseOptions(c.args, Program{Real: c.real}, io.Discard)
		require.NoError(t, err)
		require.Equal(t, c.want, o.Redis, "%v %v", c.real, c.args)
	}
}

func TestBadOptions(t *testing.T) {
	for _, c := range []struct {
		want string
		args []string
	}{
		{`"0" is not a number from 1 to 65535`, []string{"-c", "8,0"}},
		{`"x" is not a number`, []string{"-c", "x"}},
		{`an item of the list is empty`, []string{"-c", "1,,2"}},
		{`an item of the list is empty`, []string{"-nodes", ""}},
		{`"cold" is none of uncontended,hot`, []string{"-scenario", "cold"}},
		{`"nope" is none of redlock,redlock-portable,redlock-scripted,floor`, []string{"-driver", "nope"}},
		{`"redis9" is none of usual,valkey9,redis8`, []string{"-server", "redis9"}},
		{`give one of them`, []string{"-server", "valkey9", "-embedded"}},
		{`give one of them`, []string{"-portable", "-scripted"}},
		{`"none" is none of all,some`, []string{"-suite", "x", "-only", "none"}},
		{`-only chooses sections of -suite`, []string{"-only", "all"}},
		{`-suite: without -report and -cpuprofile`, []string{"-suite", "x", "-report", "y"}},
		{`-d 0s: must be positive`, []string{"-d", "0"}},
		{`-warmup -1s: must not be negative`, []string{"-warmup", "-1s"}},
		{`-rounds 0: at least 1`, []string{"-rounds", "0"}},
		{`"0" is not a number from 1 to 32`, []string{"-n", "5,0"}},
		{`-ttl 0s: at least 1ms`, []string{"-ttl", "0"}},
		{`"3" is not a number from 8`, []string{"-keylen", "3"}},
		{`"-1ms" is negative`, []string{"-rtt", "-1ms"}},
		{`invalid duration`, []string{"-rtt", "x"}},
		{`-jitter -1s: must not be negative`, []string{"-jitter", "-1s"}},
		{`"fire" is none of none,slow,hung`, []string{"-fault", "fire"}},
		{`give one of them`, []string{"-redis", "-nodes", "a:1"}},
		{`give one of them`, []string{"-redis", "-embedded"}},
		{`-growth`, []string{"-growth"}},
		{`give one of them`, []string{"-n", "3", "-nodes", "a:1"}},
		{`unexpected argument "more"`, []string{"more"}},
		{`-frobnicate`, []string{"-frobnicate"}},
	} {
		_, err := parse(c.args...)
		require.ErrorContains(t, err, c.want, "%v", c.args)

		var stdout, stderr bytes.Buffer
		require.Equal(t, 2, testProgram.Main(c.args, &stdout, &stderr))
		require.Contains(t, stderr.String(), c.want)
		require.Empty(t, stdout.String())
	}
}

func TestHelp(t *testing.T) {
	var out bytes.Buffer
	_, err := ParseOptions([]string{"-h"}, testProgram, &out)
	require.ErrorIs(t, err, flag.ErrHelp)
	require.Contains(t, out.String(), "-cpuprofile file")
	require.Zero(t, Program{}.Main([]string{"-h"}, io.Discard, io.Discard))
}
