package holding

import (
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/rules/renewal"
	"github.com/redlock-go/redlock/internal/wire/token"
)

const second = clock.Instant(time.Second)

func tokenOf(n byte) (t token.Token) {
	t[0] = n
	return t
}

// of is the Hold of a life.
func (l *lease) of(life uint64) Hold { return Hold{lease: l, life: life} }

// until is when validity ends, or false if that life is over.
func until(l *lease, life uint64) (clock.Instant, bool) {
	s, ok := l.of(life).State()
	return s.Until, ok
}

// TestHandlesOfAnotherLifeAreDead: they see nothing, and change nothing.
func TestHandlesOfAnotherLifeAreDead(t *testing.T) {
	var l lease
	old := l.begin(&State{Key: "old", Serial: 1, Token: tokenOf(1), Until: second}, 0)
	require.True(t, l.of(old).end())
	require.False(t, l.of(old).end(), "twice")
	check := func() {
		t.Helper()
		s, ok := l.of(old).State()
		require.False(t, ok)
		require.Zero(t, s, "the token outlives its lock")
		l.of(old).noteExtend(renewal.Validity{Until: 3600 * second}, renewal.Won)
		l.of(old).noteExtend(renewal.Validity{Until: 3600 * second}, renewal.Lost)
		_, absent, _, _ := l.of(old).releasing()
		require.Zero(t, absent)
		l.of(old).unreleased()
		require.False(t, l.of(old).ReportLoss())
		require.False(t, l.of(old).end())
	}
	check()
	life := l.begin(&State{Key: "new", Serial: 2, Token: tokenOf(2), Until: 2 * second}, 0b10)
	require.NotEqual(t, old, life)
	check()
	s, ok := l.of(life).State()
	require.True(t, ok)
	require.Equal(t, State{Key: "new", Serial: 2, Token: tokenOf(2), Until: 2 * second}, s)
}

// TestExtensions: validity begins at 5 and moves forward, with what has won, until the lock is lost.
func TestExtensions(t *testing.T) {
	type step struct {
		until  clock.Instant
		result renewal.Result
		want   clock.Instant
	}
	var l lease
	life := l.begin(&State{Key: "key", Token: tokenOf(1), Until: 5}, 0)
	for i, s := range []step{
		{9, renewal.Unknown, 5}, {3, renewal.Unknown, 5}, {3, renewal.Won, 5}, {9, renewal.Won, 9}, {7, renewal.Won, 9},
		{0, renewal.Lost, 0}, {20, renewal.Won, 0},
	} {
		l.of(life).noteExtend(renewal.Validity{TTL: 1, Until: s.until}, s.result)
		got, ok := until(&l, life)
		require.True(t, ok)
		require.Equal(t, s.want, got, "step %d", i)
	}
}

// TestAReleaseEndsValidity when it is asked for, and an extension does not bring it
// back. One that was never sent does.
func TestAReleaseEndsValidity(t *testing.T) {
	var l lease
	life := l.begin(&State{Key: "key", Token: tokenOf(1), Until: 5}, 0)
	for range 2 {
		l.of(life).releasing()
		s, ok := l.of(life).State()
		require.True(t, ok, "it can be released again")
		require.True(t, s.Released)
		require.Zero(t, s.Until)
	}
	l.of(life).noteExtend(renewal.Validity{Until: 9}, renewal.Won)
	l.of(life).unreleased()
	got, _ := until(&l, life)
	require.Zero(t, got, "the other release may have been sent")
	l.of(life).unreleased()
	got, _ = until(&l, life)
	require.EqualValues(t, 9, got)
}

// TestPassedOnTTL: the lock is kept alive by what its next holder has asked for.
func TestPassedOnTTL(t *testing.T) {
	var l lease
	for _, asked := range []time.Duration{9 * time.Second, 10 * time.Second} {
		life := l.begin(&State{Key: "key", Token: tokenOf(1), TTL: time.Hour, Until: 9 * second}, 0)
		next, until, ok := l.of(life).Pass(0, asked, nil)
		require.True(t, ok)
		require.Equal(t, 9*second, until)
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
