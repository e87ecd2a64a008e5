package harness

import (
	"bytes"
	"flag"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var testDrivers = []string{"redlock", "redlock-portable", "floor"}

func parse(args ...string) (Options, error) {
	return ParseOptions(args, testDrivers, []string{"redlock", "floor"}, io.Discard)
}

func TestOptionsByDefault(t *testing.T) {
	o, err := parse()
	require.NoError(t, err)
	require.Equal(t, Options{
		Masters:     5,
		Concurrency: []int{1, 8, 64, 512},
		Timing:      Timing{Warmup: 500 * time.Millisecond, Window: 3 * time.Second},
		Rounds:      1,
		Scenarios:   []Scenario{Uncontended, Hot},
		Drivers:     []string{"redlock", "floor"},
		TTL:         10 * time.Second,
		KeyLen:      24,
	}, o)
}

func TestOptionsGiven(t *testing.T) {
	o, err := parse("-nodes", "a:1, b:2", "-c", "3,1,3", "-d", "1s", "-warmup", "0", "-rounds", "5", "-scenario", "hot",
		"-driver", "floor,redlock", "-portable", "-ttl", "2s", "-keylen", "40", "-json", "-cpuprofile", "x")
	require.NoError(t, err)
	require.Equal(t, Options{
		Nodes:       []string{"a:1", "b:2"},
		Masters:     5,
		Concurrency: []int{3, 1},
		Timing:      Timing{Window: time.Second},
		Rounds:      5,
		Scenarios:   []Scenario{Hot},
		Drivers:     []string{"floor", "redlock-portable"},
		TTL:         2 * time.Second,
		KeyLen:      40,
		JSON:        true,
		CPUProfile:  "x",
	}, o)
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
		{`"nope" is none of redlock,redlock-portable,floor`, []string{"-driver", "nope"}},
		{`-d 0s: must be positive`, []string{"-d", "0"}},
		{`-warmup -1s: must not be negative`, []string{"-warmup", "-1s"}},
		{`-rounds 0: at least 1`, []string{"-rounds", "0"}},
		{`-n 0: at least 1`, []string{"-n", "0"}},
		{`-ttl 0s: at least 1ms`, []string{"-ttl", "0"}},
		{`-keylen 3: at least 16`, []string{"-keylen", "3"}},
		{`give one of them`, []string{"-n", "3", "-nodes", "a:1"}},
		{`unexpected argument "more"`, []string{"more"}},
		{`-frobnicate`, []string{"-frobnicate"}},
	} {
		_, err := parse(c.args...)
		require.ErrorContains(t, err, c.want, "%v", c.args)

		var stdout, stderr bytes.Buffer
		require.Equal(t, 2, Main(c.args, &stdout, &stderr, []Driver{&still{name: "redlock"}, &still{name: "redlock-portable"}, &still{name: "floor"}}, "redlock"))
		require.Contains(t, stderr.String(), c.want)
		require.Empty(t, stdout.String())
	}
}

func TestHelp(t *testing.T) {
	var out bytes.Buffer
	_, err := ParseOptions([]string{"-h"}, testDrivers, testDrivers[:1], &out)
	require.ErrorIs(t, err, flag.ErrHelp)
	require.Contains(t, out.String(), "-cpuprofile file")
	require.Zero(t, Main([]string{"-h"}, io.Discard, io.Discard, nil))
}
