package main

import (
	"bytes"
	"context"
	"math"
	"os"
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
		"writer":     {"-crowd", ours + "+1x4:write@broken:1ms:4"},
		"reader":     {"-crowd", ours + "+1x4:read@broken:1ms:4"},
	} {
		t.Run(name, func(t *testing.T) {
			if args[0] == "-crowd" {
				least, isBroken := contend(t, 3*time.Second, args)
				require.True(t, isBroken)
				require.Zero(t, least, "nothing is counted")
				return
			}
			least := 0.0
			for d := window; least == 0; d *= 2 { // faults leave a busy machine little time with a quorum
				require.Less(t, d, 8*window)
				var isBroken bool
				least, isBroken = contend(t, d, args)
				require.False(t, isBroken)
			}
		})
	}
}

// contend runs a crowd, and returns the least pairs of its parts, and whether one was let in beside another.
func contend(t *testing.T, window time.Duration, args []string) (least float64, isBroken bool) {
	var out, printed bytes.Buffer
	code := trials.Main(append([]string{"-json", "-warmup", "0s", "-ttl", "2s", "-d", window.String()}, args...), &out, &printed)
	lines, err := result.Read(&out, "")
	require.NoError(t, err)
	require.NotEmpty(t, lines[1:])
	least = math.MaxFloat64
	for _, l := range lines[1:] {
		least = min(least, l.Result.Pairs)
		require.Equal(t, code != 0, l.Result.Unsafe, "%s%s", l.Result.Error, printed.String())
	}
	return least, code != 0
}
