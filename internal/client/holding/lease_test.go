package holding

import (
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/base/opaque"
	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/rules/renewal"
	"github.com/redlock-go/redlock/internal/wire/token"
	"github.com/redlock-go/redlock/quorum"
)

const second = clock.Instant(time.Second)

func tokenOf(n byte) (t token.Token) {
	t[0] = n
	return t
}

// newKeeper returns one for the counts of locks alone.
func newKeeper() *Keeper { return NewKeeper(Config{Env: engine.Env{Clock: clock.New()}}) }

// extension is a call that would have a lock last until an instant.
func extension(until clock.Instant) *engine.Call {
	return &engine.Call{Op: engine.Op{TTL: 1, Until: until}}
}

// lasting is the state of a lock with validity until an instant.
func lasting(key string, serial uint64, until clock.Instant) State {
	return State{Key: key, Serial: serial, Token: tokenOf(byte(serial)), Held: renewal.Held{Until: until}}
}

// hold begins to hold the lock of s in a lease of its own.
func (l *lease) hold(s State, absent quorum.Set) Hold {
	return Hold{ref: opaque.To(l), life: l.begin(&s, absent)}
}

// TestExtensions: validity begins at 5 and moves forward, with what has won, until the lock is lost.
func TestExtensions(t *testing.T) {
	type step struct {
		until  clock.Instant
		result renewal.Result
		want   clock.Instant
	}
	k := newKeeper()
	first := lasting("key", 1, 5)
	h := k.Begin(&first, 0, 0)
	for i, s := range []step{
		{9, renewal.Unknown, 5}, {3, renewal.Unknown, 5}, {3, renewal.Won, 5}, {9, renewal.Won, 9}, {7, renewal.Won, 9},
		{0, renewal.Lost, 0}, {20, renewal.Won, 0},
	} {
		k.NoteExtend(h, extension(s.until), s.result)
		got, ok := h.State()
		require.True(t, ok)
		require.Equal(t, s.want, got.Until, "step %d", i)
	}
}

// TestAReleaseEndsValidity when it is asked for, and an extension does not bring it
// back. One that was never sent does.
func TestAReleaseEndsValidity(t *testing.T) {
	k := newKeeper()
	first := lasting("key", 1, 3600*second)
	h := k.Begin(&first, 0, 0)
	require.Equal(t, 1, k.expiries.count())
	for range 2 {
		k.Releasing(h)
		s, ok := h.State()
		require.True(t, ok, "it can be released again")
		require.True(t, s.Released)
		require.Zero(t, s.Until)
		require.Zero(t, k.expiries.count())
	}
	k.NoteExtend(h, extension(7200*second), renewal.Won)
	k.Unreleased(h)
	s, _ := h.State()
	require.Zero(t, s.Until, "the other release may have been sent")
	require.Zero(t, k.expiries.count())
	k.Unreleased(h)
	s, _ = h.State()
	require.Equal(t, 7200*second, s.Until)
	require.Equal(t, 1, k.expiries.count())
}

// TestPassedOnTTL: the lock is kept alive by what its next holder has asked for.
func TestPassedOnTTL(t *testing.T) {
	var l lease
	for _, asked := range []time.Duration{9 * time.Second, 10 * time.Second} {
		first := lasting("key", 1, 9*second)
		first.TTL = time.Hour
		h := l.hold(first, 0)
		next, until, ok := h.Pass(0, 0, asked, nil)
		require.True(t, ok)
		require.Equal(t, 9*second, until)
		_, ok = h.State()
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
}

// TestContextsAreApart: a context outlives its lock. It keeps no other one, with the values of its user, from then on.
func TestContextsAreApart(t *testing.T) {
	home := engine.New(engine.Config{Clock: clock.New()})
	home.Site = silent{}
	k := NewKeeper(Config{Env: engine.Env{Clock: clock.New(), Ring: func() {}}, Home: home})
	var all []*Kept
	for i := range 3 { // with one result each
		first := lasting("key", uint64(i+1), 3600*second)
		c := k.Keep(t.Context(), k.Begin(&first, 0, 0))
		c.calls, _ = home.Call(engine.Extend, "key", time.Second)
		c.left.Store(1)
		(*entry)(c).Complete(nil)
		all = append(all, c)
	}
	require.NotNil(t, all[2].next)
	k.Turn()
	for _, c := range all {
		require.Nil(t, c.calls)
		require.Nil(t, c.next)
	}
}

// silent is a group without errors.
type silent struct{}

func (silent) Explain(_ *engine.Op, err error) error { return err }
