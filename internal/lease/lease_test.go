package lease_test

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/lease"
	"github.com/redlock-go/redlock/internal/token"
)

func tokenOf(n byte) (t token.Token) {
	t[0] = n
	return t
}

func TestALifeIsWhatItWasGiven(t *testing.T) {
	var l lease.Lease
	_, _, _, ok := l.Get(0)
	require.False(t, ok, "the zero handle")
	life := l.Begin("key", tokenOf(1), time.Second, 0b101)
	require.NotZero(t, life)
	require.EqualValues(t, 0b101, l.Absent(life))
	key, tok, until, ok := l.Get(life)
	require.True(t, ok)
	require.Equal(t, "key", key)
	require.Equal(t, tokenOf(1), tok)
	require.Equal(t, time.Second, until)
}

// TestHandlesOfAnotherLifeAreDead: they see nothing, and change nothing.
func TestHandlesOfAnotherLifeAreDead(t *testing.T) {
	var l lease.Lease
	old := l.Begin("old", tokenOf(1), time.Second, 0)
	require.True(t, l.End(old))
	require.False(t, l.End(old), "twice")
	check := func() {
		t.Helper()
		key, tok, until, ok := l.Get(old)
		require.False(t, ok)
		require.Zero(t, key)
		require.Equal(t, token.Token{}, tok, "the token outlives its lock")
		require.Zero(t, until)
		require.Zero(t, l.Absent(old))
		l.Extending(old, time.Hour)
		l.Extended(old, true)
		l.Lose(old)
		require.True(t, l.Told(old, false))
		require.False(t, l.End(old))
	}
	check()
	life := l.Begin("new", tokenOf(2), 2*time.Second, 0b10)
	require.NotEqual(t, old, life)
	check()
	key, tok, until, ok := l.Get(life)
	require.True(t, ok)
	require.Equal(t, "new", key)
	require.Equal(t, tokenOf(2), tok)
	require.Equal(t, 2*time.Second, until)
}

// TestExtensions walks through them: a step begins one, or ends one.
func TestExtensions(t *testing.T) {
	type step struct {
		begin time.Duration // until, or 0 to end one
		won   bool
		want  time.Duration // until, after the step
	}
	for name, steps := range map[string][]step{
		"longer":                      {{9, false, 5}, {0, true, 9}},
		"longer, refused":             {{9, false, 5}, {0, false, 5}},
		"shorter counts at once":      {{3, false, 3}, {0, true, 3}},
		"shorter, refused":            {{3, false, 3}, {0, false, 3}},
		"one after the other":         {{9, false, 5}, {0, true, 9}, {7, false, 7}, {0, true, 7}, {8, false, 7}, {0, true, 8}},
		"overlapping: the soonest":    {{9, false, 5}, {6, false, 5}, {0, true, 6}, {0, true, 6}},
		"overlapping, one refused":    {{9, false, 5}, {3, false, 3}, {0, false, 3}, {0, true, 3}},
		"overlaps with one that won":  {{9, false, 5}, {8, false, 5}, {0, true, 8}, {7, false, 7}, {0, true, 7}, {0, true, 7}},
		"a new group forgets the old": {{6, false, 5}, {7, false, 5}, {0, true, 6}, {0, true, 6}, {9, false, 6}, {0, true, 9}},
	} {
		t.Run(name, func(t *testing.T) {
			var l lease.Lease
			life := l.Begin("key", tokenOf(1), 5, 0)
			for i, s := range steps {
				if s.begin > 0 {
					l.Extending(life, s.begin)
				} else {
					l.Extended(life, s.won)
				}
				_, _, until, ok := l.Get(life)
				require.True(t, ok)
				require.Equal(t, s.want, until, "step %d", i)
			}
		})
	}
}

func TestExtensionThatWasNotSent(t *testing.T) {
	var l lease.Lease
	until := func(life uint64) time.Duration {
		_, _, until, _ := l.Get(life)
		return until
	}
	life := l.Begin("key", tokenOf(1), 5, 0)
	l.Extending(life, 3)
	l.Unextended(life)
	require.EqualValues(t, 5, until(life))
	l.Extending(life, 3)
	l.Extending(life, 9)
	l.Unextended(life) // which of them, the lease cannot say
	require.EqualValues(t, 3, until(life))
	l.Extended(life, true)
	require.EqualValues(t, 3, until(life))
}

func TestLostForGood(t *testing.T) {
	var l lease.Lease
	life := l.Begin("key", tokenOf(1), 5, 0)
	l.Extending(life, 9)
	l.Lose(life)
	l.Extended(life, true) // which overlapped with the one that was told
	key, _, until, ok := l.Get(life)
	require.True(t, ok, "it can still be released")
	require.Equal(t, "key", key)
	require.Zero(t, until)
}

// TestOneEndsIt: of many that end a life at once one is told so, and the lease
// passes from life to life with nobody mixing them up.
func TestOneEndsIt(t *testing.T) {
	var l lease.Lease
	var ends atomic.Int64
	for i := range 500 {
		life := l.Begin("key", tokenOf(byte(i)), time.Duration(i), 0)
		var all sync.WaitGroup
		for range 4 {
			all.Add(1)
			go func() {
				defer all.Done()
				if _, tok, _, ok := l.Get(life); ok && tok != tokenOf(byte(i)) {
					t.Error("another life's token")
				}
				if rand.IntN(2) == 0 {
					l.Lose(life)
				}
				if l.End(life) {
					ends.Add(1)
				}
			}()
		}
		all.Wait()
	}
	require.EqualValues(t, 500, ends.Load())
}

// TestALossIsToldOnce in each life, unless that is taken back.
func TestALossIsToldOnce(t *testing.T) {
	var l lease.Lease
	require.True(t, l.Told(0, true), "never begun")
	for range 2 {
		life := l.Begin("key", tokenOf(1), time.Second, 0)
		require.False(t, l.Told(life, true))
		require.True(t, l.Told(life, true))
		require.True(t, l.Told(life, false))
		require.False(t, l.Told(life, true))
		require.True(t, l.End(life))
		require.True(t, l.Told(life, true))
	}
}
