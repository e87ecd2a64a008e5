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

// until is when validity ends, or false if that life is over.
func until(l *lease.Lease, life uint64) (time.Duration, bool) {
	_, _, until, _, ok := l.Get(life)
	return until, ok
}

func TestALifeIsWhatItWasGiven(t *testing.T) {
	var l lease.Lease
	_, ok := until(&l, 0)
	require.False(t, ok, "the zero handle")
	life := l.Begin("key", tokenOf(1), time.Second, 0b101)
	require.NotZero(t, life)
	key, tok, until, released, ok := l.Get(life)
	require.True(t, ok)
	require.False(t, released)
	require.Equal(t, "key", key)
	require.Equal(t, tokenOf(1), tok)
	require.Equal(t, time.Second, until)
	require.EqualValues(t, 0b101, l.Releasing(life))
}

// TestHandlesOfAnotherLifeAreDead: they see nothing, and change nothing.
func TestHandlesOfAnotherLifeAreDead(t *testing.T) {
	var l lease.Lease
	old := l.Begin("old", tokenOf(1), time.Second, 0)
	slot := l.Extending(old, time.Hour)
	require.True(t, l.End(old))
	require.False(t, l.End(old), "twice")
	check := func() {
		t.Helper()
		key, tok, until, _, ok := l.Get(old)
		require.False(t, ok)
		require.Zero(t, key)
		require.Equal(t, token.Token{}, tok, "the token outlives its lock")
		require.Zero(t, until)
		l.Extended(old, slot, lease.Lost)
		l.Extended(old, l.Extending(old, time.Nanosecond), lease.Won)
		require.Zero(t, l.Releasing(old))
		l.Unreleased(old)
		require.False(t, l.Report(old))
		require.False(t, l.End(old))
	}
	check()
	life := l.Begin("new", tokenOf(2), 2*time.Second, 0b10)
	require.NotEqual(t, old, life)
	check()
	key, tok, until, released, ok := l.Get(life)
	require.True(t, ok)
	require.False(t, released)
	require.Equal(t, "new", key)
	require.Equal(t, tokenOf(2), tok)
	require.Equal(t, 2*time.Second, until)
}

// TestExtensions walks through them: a step begins one, named by a letter, or ends
// one. Validity ends at 5 when the first begins.
func TestExtensions(t *testing.T) {
	type step struct {
		name   byte
		begin  time.Duration // until, or 0 to end it
		result lease.Result
		want   time.Duration // until, after the step
	}
	for name, steps := range map[string][]step{
		"longer":                    {{'a', 9, 0, 5}, {'a', 0, lease.Won, 9}},
		"longer, unknown":           {{'a', 9, 0, 5}, {'a', 0, lease.Unknown, 5}},
		"longer, not sent":          {{'a', 9, 0, 5}, {'a', 0, lease.Unsent, 5}},
		"shorter counts at once":    {{'a', 3, 0, 3}, {'a', 0, lease.Won, 3}},
		"shorter, unknown":          {{'a', 3, 0, 3}, {'a', 0, lease.Unknown, 3}},
		"shorter, not sent":         {{'a', 3, 0, 3}, {'a', 0, lease.Unsent, 5}},
		"one after the other":       {{'a', 9, 0, 5}, {'a', 0, lease.Won, 9}, {'b', 7, 0, 7}, {'b', 0, lease.Won, 7}, {'c', 8, 0, 7}, {'c', 0, lease.Won, 8}},
		"two at once":               {{'a', 9, 0, 5}, {'b', 6, 0, 5}, {'a', 0, lease.Won, 6}, {'b', 0, lease.Won, 6}},
		"two at once, one unknown":  {{'a', 9, 0, 5}, {'b', 3, 0, 3}, {'b', 0, lease.Unknown, 3}, {'a', 0, lease.Won, 3}},
		"two at once, one not sent": {{'a', 9, 0, 5}, {'b', 3, 0, 3}, {'b', 0, lease.Unsent, 5}, {'a', 0, lease.Won, 3}},
		// The last does not overlap the first, whose end of validity is not its own.
		"a chain":       {{'a', 6, 0, 5}, {'b', 7, 0, 5}, {'a', 0, lease.Won, 6}, {'c', 8, 0, 6}, {'b', 0, lease.Won, 6}, {'c', 0, lease.Won, 7}},
		"lost for good": {{'a', 9, 0, 5}, {'b', 9, 0, 5}, {'a', 0, lease.Lost, 0}, {'b', 0, lease.Won, 0}, {'c', 9, 0, 0}, {'c', 0, lease.Won, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			var l lease.Lease
			life := l.Begin("key", tokenOf(1), 5, 0)
			slots := map[byte]int{}
			for i, s := range steps {
				if s.begin > 0 {
					slots[s.name] = l.Extending(life, s.begin)
				} else {
					l.Extended(life, slots[s.name], s.result)
				}
				got, ok := until(&l, life)
				require.True(t, ok)
				require.Equal(t, s.want, got, "step %d", i)
			}
		})
	}
}

// TestAReleaseEndsValidity when it is asked for, and an extension does not bring it
// back. One that was never sent does.
func TestAReleaseEndsValidity(t *testing.T) {
	var l lease.Lease
	life := l.Begin("key", tokenOf(1), 5, 0)
	slot := l.Extending(life, 9)
	for range 2 {
		l.Releasing(life)
		_, _, until, released, ok := l.Get(life)
		require.True(t, ok, "it can be released again")
		require.True(t, released)
		require.Zero(t, until)
	}
	l.Extended(life, slot, lease.Won)
	l.Unreleased(life)
	got, _ := until(&l, life)
	require.Zero(t, got, "the other release may have been sent")
	l.Unreleased(life)
	got, _ = until(&l, life)
	require.EqualValues(t, 9, got)
}

// TestALossIsReportedOnce in each life, and not of a lock that was released twice.
func TestALossIsReportedOnce(t *testing.T) {
	var l lease.Lease
	require.False(t, l.Report(0), "never begun")
	for range 2 {
		life := l.Begin("key", tokenOf(1), time.Second, 0)
		l.Releasing(life)
		l.Unreleased(life)
		l.Releasing(life)
		require.True(t, l.Report(life))
		require.False(t, l.Report(life))
		require.True(t, l.End(life))
		require.False(t, l.Report(life))
		life = l.Begin("key", tokenOf(1), time.Second, 0)
		l.Releasing(life)
		l.Releasing(life)
		require.False(t, l.Report(life), "the other may have deleted it")
		require.True(t, l.End(life))
	}
}

// TestOneEndsIt: of many that end a life at once one is told so, and no life's
// token is seen in another.
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
				if _, tok, _, _, ok := l.Get(life); ok && tok != tokenOf(byte(i)) {
					t.Error("another life's token")
				}
				if rand.IntN(2) == 0 {
					l.Releasing(life)
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
