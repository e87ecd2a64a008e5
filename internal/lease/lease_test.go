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
	life := l.Begin("key", tokenOf(1), time.Second)
	require.NotZero(t, life)
	key, tok, until, ok := l.Get(life)
	require.True(t, ok)
	require.Equal(t, "key", key)
	require.Equal(t, tokenOf(1), tok)
	require.Equal(t, time.Second, until)
}

// TestHandlesOfAnotherLifeAreDead: they see nothing, and change nothing.
func TestHandlesOfAnotherLifeAreDead(t *testing.T) {
	var l lease.Lease
	old := l.Begin("old", tokenOf(1), time.Second)
	require.True(t, l.End(old))
	require.False(t, l.End(old), "twice")
	check := func() {
		t.Helper()
		key, tok, until, ok := l.Get(old)
		require.False(t, ok)
		require.Zero(t, key)
		require.Equal(t, token.Token{}, tok, "the token outlives its lock")
		require.Zero(t, until)
		l.Extend(old, time.Hour)
		l.Shorten(old, 0)
		require.False(t, l.End(old))
	}
	check()
	life := l.Begin("new", tokenOf(2), 2*time.Second)
	require.NotEqual(t, old, life)
	check()
	key, tok, until, ok := l.Get(life)
	require.True(t, ok)
	require.Equal(t, "new", key)
	require.Equal(t, tokenOf(2), tok)
	require.Equal(t, 2*time.Second, until)
}

// TestExtendAndShorten: the one moves the end anywhere, the other only forward
// to now.
func TestExtendAndShorten(t *testing.T) {
	var l lease.Lease
	life := l.Begin("key", tokenOf(1), 5)
	for _, c := range []struct {
		f     func(uint64, time.Duration)
		until time.Duration
		want  time.Duration
	}{{l.Extend, 9, 9}, {l.Extend, 7, 7}, {l.Shorten, 8, 7}, {l.Shorten, 6, 6}, {l.Shorten, 1<<63 - 1, 6}, {l.Shorten, 0, 0}, {l.Extend, 3, 3}} {
		c.f(life, c.until)
		_, _, until, ok := l.Get(life)
		require.True(t, ok)
		require.Equal(t, c.want, until)
	}
}

// TestOneEndsIt: of many that end a life at once one is told so, and the lease
// passes from life to life with nobody mixing them up.
func TestOneEndsIt(t *testing.T) {
	var l lease.Lease
	var ends atomic.Int64
	for i := range 500 {
		life := l.Begin("key", tokenOf(byte(i)), time.Duration(i))
		var all sync.WaitGroup
		for range 4 {
			all.Add(1)
			go func() {
				defer all.Done()
				if _, tok, _, ok := l.Get(life); ok && tok != tokenOf(byte(i)) {
					t.Error("another life's token")
				}
				if rand.IntN(2) == 0 {
					l.Shorten(life, 0)
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
