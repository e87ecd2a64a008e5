package group

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/quorum"
)

// newVoters are those of a group of three nodes.
func newVoters(cfg Config) (v *voters, c *testkit.Clock) {
	c = new(testkit.Clock)
	v = new(voters)
	v.init(&cfg, 3)
	v.clock = c
	return v, c
}

// TestVoters: a node whose server may have forgotten locks has no vote until the longest TTL that was sent has passed,
// counted from when it came back, and in a call with a longer lock for as long as that lasts.
func TestVoters(t *testing.T) {
	v, clock := newVoters(Config{})
	for node, run := range []string{"a", "b", "c"} {
		v.meets(node, &conn.Server{RunID: run})
	}
	require.Zero(t, v.Quarantined(), "a first contact is trusted")
	v.meets(0, &conn.Server{RunID: "a2"})
	require.Zero(t, v.Quarantined(), "no TTL was sent")
	v.NoteTTL(10 * time.Second)
	v.NoteTTL(time.Second)
	v.meets(0, &conn.Server{RunID: "a2"})
	require.Zero(t, v.Quarantined(), "a connection that ends is not a restart")

	v.meets(1, &conn.Server{RunID: "b2"})
	require.Equal(t, quorum.Set(0b010), v.Quarantined())
	clock.Advance(9 * time.Second)
	v.failed(2, conn.ErrDown)
	v.meets(2, &conn.Server{RunID: "c"})
	require.Equal(t, quorum.Set(0b010), v.Quarantined())
	v.failed(2, errors.Join(conn.ErrNotMaster))
	v.meets(2, &conn.Server{RunID: "c"})
	v.NoteTTL(time.Minute) // concerns nothing that was forgotten
	require.Equal(t, quorum.Set(0b110), v.Quarantined())
	require.Equal(t, []time.Duration{0, time.Second, 10 * time.Second}, []time.Duration{v.left(0), v.left(1), v.left(2)})
	clock.Advance(time.Second)
	require.Equal(t, quorum.Set(0b100), v.Quarantined())
	require.Equal(t, quorum.Set(0b111), v.QuarantinedFor(time.Minute), "the first one too: of its own lock")
	clock.Advance(9 * time.Second)
	require.Zero(t, v.Quarantined())
	require.Zero(t, v.left(2))
	clock.Advance(41 * time.Second)
	require.Equal(t, quorum.Set(0b100), v.QuarantinedFor(time.Minute))
	clock.Advance(10 * time.Second)
	require.Zero(t, v.QuarantinedFor(time.Minute))
}

// TestStrictVoters: with MaxTTL a node that is met for the first time has no vote until it has been up for so long.
func TestStrictVoters(t *testing.T) {
	cfg := Config{longest: 10*time.Second - 102*time.Millisecond} // and drift
	v, clock := newVoters(cfg)
	v.meets(0, &conn.Server{RunID: "a", Uptime: 4 * time.Second})
	v.meets(1, &conn.Server{RunID: "b", Uptime: time.Hour})
	v.meets(2, &conn.Server{RunID: "c", Keeps: true})
	require.Equal(t, quorum.Set(0b001), v.Quarantined())
	require.InDelta(t, 7*time.Second, v.left(0), float64(2*time.Millisecond))
	clock.Advance(7 * time.Second)
	require.Zero(t, v.Quarantined())

	cfg.TrustRestarts = true
	v, _ = newVoters(cfg)
	v.meets(0, &conn.Server{RunID: "a"})
	v.meets(0, &conn.Server{RunID: "b"})
	require.Zero(t, v.Quarantined())
	require.Zero(t, v.QuarantinedFor(time.Hour))
	require.Zero(t, v.left(0))
}

// TestWhatANodeMustShow: a run_id where a restart must be seen, and a version from Redis 5 on where acquires are fenced; and
// that it is the node of no other group.
func TestWhatANodeMustShow(t *testing.T) {
	silent := conn.Server{Err: errors.New("NOPERM the command info")}
	keeps, old := conn.Server{Keeps: true}, conn.Server{Product: "redis", Version: "4.0.14", RunID: "x"}
	strict := Config{longest: time.Minute}
	trusting := strict
	trusting.TrustRestarts = true
	fenced := func(c Config) Config { c.Fenced = true; return c }
	for name, c := range map[string]struct {
		server conn.Server
		cfg    Config
		want   error
		text   string
	}{
		"no run_id":                     {silent, Config{}, nil, ""},
		"no run_id, MaxTTL":             {silent, strict, conn.ErrNoRunID, "command info"},
		"no run_id, trusted":            {silent, trusting, nil, ""},
		"no run_id, persistent":         {keeps, strict, nil, ""},
		"no run_id, trusted, fenced":    {silent, fenced(trusting), conn.ErrNoRunID, ""},
		"no run_id, persistent, fenced": {keeps, fenced(strict), conn.ErrNoRunID, ""},
		"Redis 4":                       {old, strict, nil, ""},
		"Redis 4, fenced":               {old, fenced(strict), conn.ErrTooOld, "redis 4.0.14"},
	} {
		g := &Group{Config: c.cfg, names: []string{"n"}}
		g.Config.Servers = new(Servers)
		g.fleet.init(&g.Config, 1)
		err := g.accept(0, c.server)
		require.ErrorIs(t, err, c.want, name)
		if c.want != nil {
			require.ErrorContains(t, err, c.text, name)
		}
	}
}

// TestServersOfGroups: a server is the node of one group at a time.
func TestServersOfGroups(t *testing.T) {
	var all Servers
	groups := []*Group{{names: []string{"a", "b"}}, {names: []string{"c"}, Config: Config{Shared: Shared{First: 2}}}}
	for _, g := range groups {
		g.Config.Servers = &all
	}
	s := conn.Server{RunID: "x"}
	require.NoError(t, groups[0].accept(1, s))
	require.NoError(t, groups[0].accept(1, s), "again, on its next connection")
	err := groups[1].accept(0, s)
	require.ErrorIs(t, err, conn.ErrSameServer)
	require.ErrorContains(t, err, "b")
	all.leave(2)
	require.Error(t, groups[1].accept(0, s))
	all.leave(1)
	require.NoError(t, groups[1].accept(0, s))
	require.NoError(t, groups[1].accept(0, conn.Server{RunID: "y"}), "and did not come up")
	require.NoError(t, groups[0].accept(0, s))
}
