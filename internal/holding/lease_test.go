package holding

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

// of is the Hold of a life.
func (l *lease) of(life uint64) Hold { return Hold{lease: l, life: life} }

// until is when validity ends, or false if that life is over.
func until(l *lease, life uint64) (time.Duration, bool) {
	s, ok := l.of(life).State()
	return s.Until, ok
}

func TestALifeIsWhatItWasGiven(t *testing.T) {
	var l lease
	_, ok := until(&l, 0)
	require.False(t, ok, "the zero handle")
	life := l.begin(State{Key: "key", Token: tokenOf(1), Until: time.Second}, 0b101)
	require.NotZero(t, life)
	s, ok := l.of(life).State()
	require.True(t, ok)
	require.Equal(t, State{Key: "key", Token: tokenOf(1), Until: time.Second}, s)
	absent, _, _ := l.of(life).releasing()
	require.EqualValues(t, 0b101, absent)
}

// TestHandlesOfAnotherLifeAreDead: they see nothing, and change nothing.
func TestHandlesOfAnotherLifeAreDead(t *testing.T) {
	var l lease
	old := l.begin(State{Key: "old", Token: tokenOf(1), Until: time.Second}, 0)
	slot := l.of(old).Extending(0, time.Hour)
	require.True(t, l.of(old).end())
	require.False(t, l.of(old).end(), "twice")
	check := func() {
		t.Helper()
		s, ok := l.of(old).State()
		require.False(t, ok)
		require.Zero(t, s, "the token outlives its lock")
		l.of(old).Extended(slot, renewal.Lost)
		slot = nil
		l.of(old).Extended(l.of(old).Extending(0, time.Nanosecond), renewal.Won)
		absent, _, _ := l.of(old).releasing()
		require.Zero(t, absent)
		l.of(old).Unreleased()
		require.False(t, l.of(old).ReportLoss())
		require.False(t, l.of(old).end())
	}
	check()
	life := l.begin(State{Key: "new", Token: tokenOf(2), Until: 2 * time.Second}, 0b10)
	require.NotEqual(t, old, life)
	check()
	s, ok := l.of(life).State()
	require.True(t, ok)
	require.Equal(t, State{Key: "new", Token: tokenOf(2), Until: 2 * time.Second}, s)
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
			life := l.begin(State{Key: "key", Token: tokenOf(1), Until: 5}, 0)
			slots := map[byte]*renewal.Extension{}
			for i, s := range steps {
				if s.begin > 0 {
					slots[s.name] = l.of(life).Extending(0, s.begin)
				} else {
					l.of(life).Extended(slots[s.name], s.result)
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
	life := l.begin(State{Key: "key", Token: tokenOf(1), Until: 5}, 0)
	slot := l.of(life).Extending(0, 9)
	for range 2 {
		l.of(life).releasing()
		s, ok := l.of(life).State()
		require.True(t, ok, "it can be released again")
		require.True(t, s.Released)
		require.Zero(t, s.Until)
	}
	l.of(life).Extended(slot, renewal.Won)
	l.of(life).Unreleased()
	got, _ := until(&l, life)
	require.Zero(t, got, "the other release may have been sent")
	l.of(life).Unreleased()
	got, _ = until(&l, life)
	require.EqualValues(t, 9, got)
}

// TestALossIsReportedOnce in each life, and not of a lock that was released twice.
func TestALossIsReportedOnce(t *testing.T) {
	var l lease
	require.False(t, l.of(0).ReportLoss(), "never begun")
	for range 2 {
		life := l.begin(State{Key: "key", Token: tokenOf(1), Until: time.Second}, 0)
		l.of(life).releasing()
		l.of(life).Unreleased()
		l.of(life).releasing()
		require.True(t, l.of(life).ReportLoss())
		require.False(t, l.of(life).ReportLoss())
		require.True(t, l.of(life).end())
		require.False(t, l.of(life).ReportLoss())
		life = l.begin(State{Key: "key", Token: tokenOf(1), Until: time.Second}, 0)
		l.of(life).releasing()
		l.of(life).releasing()
		require.False(t, l.of(life).ReportLoss(), "the other may have deleted it")
		require.True(t, l.of(life).end())
	}
}

// TestOneEndsIt: of many that end a life at once one is told so, and no life's
// token is seen in another.
func TestOneEndsIt(t *testing.T) {
	var l lease
	var ends atomic.Int64
	for i := range 500 {
		life := l.begin(State{Key: "key", Token: tokenOf(byte(i)), Until: time.Duration(i)}, 0)
		var all sync.WaitGroup
		for range 4 {
			all.Add(1)
			go func() {
				defer all.Done()
				if s, ok := l.of(life).State(); ok && s.Token != tokenOf(byte(i)) {
					t.Error("another life's token")
				}
				if rand.IntN(2) == 0 {
					l.of(life).releasing()
				}
				if l.of(life).end() {
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
		life := l.begin(State{Key: "key", Token: tokenOf(1), TTL: time.Hour, Until: 9 * time.Second}, 0)
		next, until, ok := l.of(life).Pass(0, asked)
		require.True(t, ok)
		require.Equal(t, 9*time.Second, until)
		_, ok = l.of(life).State()
		require.False(t, ok, "the old handle lives")
		s, ok := next.State()
		require.True(t, ok)
		require.Equal(t, until, s.Until)
		require.Equal(t, asked, s.TTL)
	}
}

// TestLeaseIsSmall: a client may hold a million.
func TestLeaseIsSmall(t *testing.T) {
	require.LessOrEqual(t, unsafe.Sizeof(lease{}), uintptr(112))
	require.LessOrEqual(t, unsafe.Sizeof(entry{}), uintptr(48))
}
