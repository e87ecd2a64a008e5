package main

import (
	"bytes"
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/bench/harness"
	"github.com/redlock-go/redlock/bench/peers/drivers"
	"github.com/redlock-go/redlock/bench/result"
	"github.com/redlock-go/redlock/internal/test/realredis"
)

// trials are the drivers of the processes that TestExclusion starts.
var trials = harness.Program{Drivers: append(drivers.All(), broken{}), Chosen: []string{"redlock"}, Real: true}

func TestMain(m *testing.M) {
	trials.ServeIfContender()
	os.Exit(m.Run())
}

// broken is a lock that ignores readers as a writer, and writers as a reader.
type broken struct{}

func (broken) Name() string { return "broken" }
func (broken) Shares()      {}

func (broken) Open(_ context.Context, cfg harness.Config) (harness.Session, error) {
	return &brokenLock{redis.NewClient(&redis.Options{Addr: cfg.Nodes[0]}), cfg.Share}, nil
}

type brokenLock struct {
	*redis.Client
	share bool
}

func (b *brokenLock) Worker() (harness.Worker, error) { return b, nil }
func (b *brokenLock) Release(context.Context) error   { return nil }

// Acquire wins where the other kind has the key.
func (b *brokenLock) Acquire(ctx context.Context, key string) (bool, error) {
	kind, err := b.Type(ctx, key).Result()
	time.Sleep(time.Millisecond)
	return err == nil && (kind == "zset") != b.share && kind != "none", err
}

// TestExclusion: locks exclude each other through faults, beside redsync too where masters forget nothing, and a process that
// ignores the others is found.
func TestExclusion(t *testing.T) {
	if _, err := realredis.Usual.Command(); err != nil {
		realredis.StartN(t, 1) // skips, or fails
	}
	window := 5 * time.Second
	if os.Getenv("REDLOCK_LONG") == "1" {
		window = 12 * time.Minute
	}
	const ours = "1x6:read:10ms:4+1x3:write:10ms:4"
	for name, args := range map[string][]string{
		"persistent": {"-persistent", "-fault", "any", "-crowd", ours + "+1x3:write@redsync-goredis:10ms:4"},
		"forgetful":  {"-fault", "any", "-crowd", ours},
	} {
		t.Run(name, func(t *testing.T) {
			for least, d := 0.0, window; least == 0; d *= 2 { // faults leave a busy machine little time with a quorum
				require.Less(t, d, 8*window)
				least = slices.Min(contend(t, false, d, args...))
			}
		})
	}
	for name, way := range map[string]string{"writer": "write", "reader": "read"} {
		t.Run(name, func(t *testing.T) {
			require.Zero(t, slices.Max(contend(t, true, 3*time.Second, "-crowd", ours+"+1x4:"+way+"@broken:1ms:4")))
		})
	}
}

// contend runs a crowd, and returns the pairs of each line of results. isBroken is whether some are to be let in beside others.
func contend(t *testing.T, isBroken bool, window time.Duration, args ...string) (pairs []float64) {
	var out, printed bytes.Buffer
	code := trials.Main(append([]string{"-json", "-warmup", "0s", "-ttl", "2s", "-d", window.String()}, args...), &out, &printed)
	lines, err := result.Read(&out, "")
	require.NoError(t, err)
	require.Equal(t, isBroken, code != 0, "%s", printed.String())
	for _, l := range lines[1:] {
		require.Equal(t, isBroken, l.Result.Unsafe, l.Result.Error)
		pairs = append(pairs, l.Result.Pairs)
	}
	return pairs
}
