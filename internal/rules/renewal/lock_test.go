package renewal_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/rules/renewal"
)

const second = clock.Instant(time.Second)

// TestLock: the first of the release, the end of validity and the next renewal decides, also during
// a renewal.
func TestLock(t *testing.T) {
	h := renewal.Held{Until: 9 * second, TTL: 9 * time.Second}
	var l renewal.Lock
	require.Equal(t, renewal.Next(0, h.TTL), l.Review(h, 0))
	for _, busy := range []bool{false, true} {
		normal := renewal.Renew
		if busy {
			normal = renewal.Wait
		}
		for _, c := range []struct {
			now  clock.Instant
			held renewal.Held
			want renewal.Action
		}{
			{9 * second, h, renewal.Expire},
			{3 * second, renewal.Held{Until: 9 * second, Released: true}, renewal.Stop},
			{9 * second, renewal.Held{Until: 9 * second, Released: true}, renewal.Stop},
			{3 * second, h, normal}, // and it begins
		} {
			a, next := l.Event(c.held, c.now)
			require.Equal(t, c.want, a, "at %v, busy %v", c.now, busy)
			if a == normal {
				require.Equal(t, h.Until, next)
			}
		}
	}

	for r, want := range map[renewal.Result]renewal.Action{renewal.Won: renewal.Wait, renewal.Unknown: renewal.Wait, renewal.Lost: renewal.Lose} {
		l.Event(h, 3*second)
		a, next := l.Result(r, h, 3*second, 4*second, 0)
		require.Equal(t, want, a)
		require.LessOrEqual(t, next, h.Until)
	}

	// An extend by the holder brings the next event a third of its TTL later.
	short := renewal.Held{Until: 2 * second, TTL: time.Second}
	require.Equal(t, renewal.Next(second, time.Second), l.Review(short, second))
	require.Equal(t, short.Until, l.Review(short, 19*second/10))
	l.Event(h, 3*second)
	require.Equal(t, short.Until, l.Review(short, second), "a renewal is under way")
}
