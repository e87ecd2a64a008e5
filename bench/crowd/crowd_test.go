package crowd

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/bench/child"
	"github.com/redlock-go/redlock/internal/test/embedded"
)

var libraries = map[string]Open{"redlock": Ours}

func TestMain(m *testing.M) {
	child.Serve(childEnv, func(text string) error { return serve(libraries, text) })
	os.Exit(m.Run())
}

func TestParse(t *testing.T) {
	c, err := parse("2x64:crash:20ms:3")
	require.NoError(t, err)
	require.Equal(t, crowd{processes: 2, callers: 64, crash: true, hold: 20 * time.Millisecond, keys: 3}, c)
	c, err = parse("1x1:poll:0s")
	require.NoError(t, err)
	require.Equal(t, crowd{processes: 1, callers: 1, want: Poll, keys: 1}, c)
	for _, text := range []string{"", "1x1:read", "1:read:1s", "1x1:wrote:1s", "1x1:read:1"} {
		_, err := parse(text)
		require.Error(t, err, text)
	}
}

// TestOnce: crowds of several processes are at work together, until the end; one that crashes keeps a writer out.
func TestOnce(t *testing.T) {
	fleet, err := embedded.Start(3)
	require.NoError(t, err)
	defer fleet.Close()
	o := order{Library: "redlock", Nodes: fleet.Addrs(), For: time.Second, TTL: time.Minute, Key: "once"}
	all, err := once(o, []string{"2x2:read:1ms", "1x1:write:1ms"})
	require.NoError(t, err)
	for _, f := range all {
		require.Empty(t, f.Failed)
		require.Positive(t, f.Grants)
		require.InDelta(t, float64(f.Grants), f.Rate, 1)
	}
	o.Key = "crash"
	all, err = once(o, []string{"1x2:crash:1h"})
	require.NoError(t, err)
	require.Equal(t, 2, all[0].Grants)
	all, err = once(o, []string{"1x1:write:1ms"})
	require.NoError(t, err)
	require.Zero(t, all[0].Grants)
	require.GreaterOrEqual(t, all[0].Most, o.For)
	_, err = once(o, []string{"1x1:wrote:1ms"})
	require.Error(t, err)
}

func TestMiddle(t *testing.T) {
	f := middle([]figures{{Grants: 1, Rate: 3, P99: 1, Most: 9}, {Rate: 1, P99: 5, Most: 7, Failed: "x"}, {Rate: 2, P99: 3, Most: 8}})
	require.Equal(t, figures{Grants: 1, Rate: 2, P99: 3, Most: 9, Failed: "x"}, f)
}
