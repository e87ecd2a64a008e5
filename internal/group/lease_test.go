package group

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/renewal"
	"github.com/redlock-go/redlock/internal/token"
)

func tokenOf(n byte) (t token.Token) {
	t[0] = n
	return t
}

// until is when validity ends, or false if that life is over.
func until(l *lease, life uint64) (time.Duration, bool) {
	s, ok := l.get(life)
	return s.until, ok
}

func TestALifeIsWhatItWasGiven(t *testing.T) {
	var l lease
	_, ok := until(&l, 0)
	require.False(t, ok, "the zero handle")
	life := l.begin(state{key: "key", token: tokenOf(1), until: time.Second}, 0b101)
	require.NotZero(t, life)
	s, ok := l.get(life)
	require.True(t, ok)
	require.Equal(t, state{key: "key", token: tokenOf(1), until: time.Second}, s)
	absent, _, _ := l.releasing(life)
	require.EqualValues(t, 0b101, absent)
}

// TestHandlesOfAnotherLifeAreDead: they see nothing, and change nothing.
func TestHandlesOfAnotherLifeAreDead(t *testing.T) {
	var l lease
	old := l.begin(state{key: "old", token: tokenOf(1), until: time.Second}, 0)
	slot := l.extending(old, 0, time.Hour)
	require.True(t, l.end(old))
	require.False(t, l.end(old), "twice")
	check := func() {
		t.Helper()
		s, ok := l.get(old)
		require.False(t, ok)
		require.Zero(t, s, "the token outlives its lock")
		l.extended(old, slot, renewal.Lost)
		slot = nil
		l.extended(old, l.extending(old, 0, time.Nanosecond), renewal.Won)
		absent, _, _ := l.releasing(old)
		require.Zero(t, absent)
		l.unreleased(old)
		require.False(t, l.reportLoss(old))
		require.False(t, l.end(old))
	}
	check()
	life := l.begin(state{key: "new", token: tokenOf(2), until: 2 * time.Second}, 0b10)
	require.NotEqual(t, old, life)
	check()
	s, ok := l.get(life)
	require.True(t, ok)
	require.Equal(t, state{key: "new", token: tokenOf(2), until: 2 * time.Second}, s)
}

// TestExtensions walks through them: a step begins one, named by a letter, or ends
// one. Validity ends at 5 when the first begins.
func TestExtensions(t *testing.T) {
	type step struct {
		name   byte
		begin  time.Duration // until, or 0 to end it
		result renewal.Result
		want   time.Duration // until, after the step
	}
	for name, steps := range map[string][]step{
		"longer":                    {{'a', 9, 0, 5}, {'a', 0, renewal.Won, 9}},
		"longer, unknown":           {{'a', 9, 0, 5}, {'a', 0, renewal.Unknown, 5}},
		"longer, not sent":          {{'a', 9, 0, 5}, {'a', 0, renewal.Unsent, 5}},
		"shorter counts at once":    {{'a', 3, 0, 3}, {'a', 0, renewal.Won, 3}},
		"shorter, unknown":          {{'a', 3, 0, 3}, {'a', 0, renewal.Unknown, 3}},
		"shorter, not sent":         {{'a', 3, 0, 3}, {'a', 0, renewal.Unsent, 5}},
		"one after the other":       {{'a', 9, 0, 5}, {'a', 0, renewal.Won, 9}, {'b', 7, 0, 7}, {'b', 0, renewal.Won, 7}, {'c', 8, 0, 7}, {'c', 0, renewal.Won, 8}},
		"two at once":               {{'a', 9, 0, 5}, {'b', 6, 0, 5}, {'a', 0, renewal.Won, 6}, {'b', 0, renewal.Won, 6}},
		"two at once, one unknown":  {{'a', 9, 0, 5}, {'b', 3, 0, 3}, {'b', 0, renewal.Unknown, 3}, {'a', 0, renewal.Won, 3}},
		"two at once, one not sent": {{'a', 9, 0, 5}, {'b', 3, 0, 3}, {'b', 0, renewal.Unsent, 5}, {'a', 0, renewal.Won, 3}},
		// The last does not overlap the first, whose end of validity is not its own.
		"a chain":       {{'a', 6, 0, 5}, {'b', 7, 0, 5}, {'a', 0, renewal.Won, 6}, {'c', 8, 0, 6}, {'b', 0, renewal.Won, 6}, {'c', 0, renewal.Won, 7}},
		"lost for good": {{'a', 9, 0, 5}, {'b', 9, 0, 5}, {'a', 0, renewal.Lost, 0}, {'b', 0, renewal.Won, 0}, {'c', 9, 0, 0}, {'c', 0, renewal.Won, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			var l lease
			life := l.begin(state{key: "key", token: tokenOf(1), until: 5}, 0)
			slots := map[byte]*renewal.Extension{}
			for i, s := range steps {
				if s.begin > 0 {
					slots[s.name] = l.extending(life, 0, s.begin)
				} else {
					l.extended(life, slots[s.name], s.result)
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
	var l lease
	life := l.begin(state{key: "key", token: tokenOf(1), until: 5}, 0)
	slot := l.extending(life, 0, 9)
	for range 2 {
		l.releasing(life)
		s, ok := l.get(life)
		require.True(t, ok, "it can be released again")
		require.True(t, s.released)
		require.Zero(t, s.until)
	}
	l.extended(life, slot, renewal.Won)
	l.unreleased(life)
	got, _ := until(&l, life)
	require.Zero(t, got, "the other release may have been sent")
	l.unreleased(life)
	got, _ = until(&l, life)
	require.EqualValues(t, 9, got)
}

// TestALossIsReportedOnce in each life, and not of a lock that was released twice.
func TestALossIsReportedOnce(t *testing.T) {
	var l lease
	require.False(t, l.reportLoss(0), "never begun")
	for range 2 {
		life := l.begin(state{key: "key", token: tokenOf(1), until: time.Second}, 0)
		l.releasing(life)
		l.unreleased(life)
		l.releasing(life)
		require.True(t, l.reportLoss(life))
		require.False(t, l.reportLoss(life))
		require.True(t, l.end(life))
		require.False(t, l.reportLoss(life))
		life = l.begin(state{key: "key", token: tokenOf(1), until: time.Second}, 0)
		l.releasing(life)
		l.releasing(life)
		require.False(t, l.reportLoss(life), "the other may have deleted it")
		require.True(t, l.end(life))
	}
}

// TestOneEndsIt: of many that end a life at once one is told so, and no life's
// token is seen in another.
func TestOneEndsIt(t *testing.T) {
	var l lease
	var ends atomic.Int64
	for i := range 500 {
		life := l.begin(state{key: "key", token: tokenOf(byte(i)), until: time.Duration(i)}, 0)
		var all sync.WaitGroup
		for range 4 {
			all.Add(1)
			go func() {
				defer all.Done()
				if s, ok := l.get(life); ok && s.token != tokenOf(byte(i)) {
					t.Error("another life's token")
				}
				if rand.IntN(2) == 0 {
					l.releasing(life)
				}
				if l.end(life) {
					ends.Add(1)
				}
			}()
		}
		all.Wait()
	}
	require.EqualValues(t, 500, ends.Load())
}

// TestPassedOnTTL: the lock is kept alive by what its next holder has asked for.
func TestPassedOnTTL(t *testing.T) {
	var l lease
	for _, asked := range []time.Duration{9 * time.Second, 10 * time.Second} {
		life := l.begin(state{key: "key", token: tokenOf(1), ttl: time.Hour, until: 9 * time.Second}, 0)
		next, until, ok := l.pass(life, 0, asked)
		require.True(t, ok)
		require.Equal(t, 9*time.Second, until)
		_, ok = l.get(life)
		require.False(t, ok, "the old handle lives")
		s, ok := l.get(next)
		require.True(t, ok)
		require.Equal(t, until, s.until)
		require.Equal(t, asked, s.ttl)
	}
}

// TestLeaseIsSmall: a client may hold a million.
func TestLeaseIsSmall(t *testing.T) {
	require.LessOrEqual(t, unsafe.Sizeof(lease{}), uintptr(112))
	require.LessOrEqual(t, unsafe.Sizeof(entry{}), uintptr(48))
}
