package redlock_test

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/fakeredis"
)

// TestPasswordIsNeverPrinted with what holds it: a Config, a Client, and
// whatever refers to one. The rest of a Config is.
func TestPasswordIsNeverPrinted(t *testing.T) {
	var seen page
	cfg := redlock.Config{
		Nodes:      withPassword(fakeredis.StartN(t, 3, fakeredis.Options{Password: password}), ""),
		Logger:     slog.New(slog.DiscardHandler),
		ClientName: "worker",
	}
	c := newClient(t, cfg.Nodes)
	l := mustAcquire(t, c, "k", ttl)
	op := &redlock.Op{Kind: redlock.OpExtend, Key: []byte("k"), TTL: ttl}
	copy(op.Token[:], l.Token())
	require.NoError(t, submit(t, c, op))
	require.NoError(t, c.Close()) // or printing it would be a race
	type embedding struct{ Locks redlock.Config }
	for _, v := range []any{cfg, &cfg, []redlock.Config{cfg}, embedding{cfg}, &embedding{cfg}, map[int]redlock.Config{1: cfg}, c, l, &l} {
		fmt.Fprintf(&seen, "%v\n%+v\n%#v\n%s\n%q\n%x\n", v, v, v, v, v, v)
	}
	fmt.Fprintf(&seen, "%v\n%+v\n%#v\n", op, op, op)
	seen.add(cfg, &cfg)
	seen.check(t)
	for _, text := range []string{fmt.Sprintf("%+v", cfg), fmt.Sprintf("%#v", &cfg)} {
		require.Contains(t, text, cfg.Nodes[0][len(cfg.Nodes[0])-5:], "the port")
		require.Contains(t, text, "ClientName")
		require.Contains(t, text, "worker")
	}
	cfg.Nodes[0] = "redis://:sesame zzyzx"
	seen.add(cfg)
	seen.check(t)
}
