package fakeredis

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/rules/fencing"
	"github.com/redlock-go/redlock/internal/test/fencenode"
	"github.com/redlock-go/redlock/internal/test/testkit"
)

// voting gives a server a vote in fleet f, by the key "set".
func voting(t *testing.T, s *Server) (me string) {
	s.LoadScripts()
	c, me := testkit.DialText(t, s.Addr()), "f:"+s.RunID()
	_, nonce, ok := strings.Cut(c.Do("EVALSHA "+fencing.MemberSHA1+" 1 set notice "+me+" n"), "*[:5 \"")
	require.True(t, ok)
	require.Equal(t, `*[:1 ""]`, c.Do("EVALSHA "+fencing.MemberSHA1+" 1 set rejoin "+me+" "+strings.TrimSuffix(nonce, `"]`)+" 7 f"))
	return me
}

// TestFenceIsAKey: the tokens of a server go with it, all at once.
func TestFenceIsAKey(t *testing.T) {
	s := StartN(t, 1)[0]
	_, ok := s.Fence("set")
	require.False(t, ok)
	me := voting(t, s)
	acquire := func(me string, token int) string {
		return testkit.DialText(t, s.Addr()).Do(fmt.Sprint("EVALSHA ", fencing.AcquireSHA1, " 2 set k ", me, " ", token, fmt.Sprintf(" 0 100000 %016d n", token)))
	}
	require.Equal(t, ":1", acquire(me, 9))
	require.ElementsMatch(t, []string{"set", "k"}, s.Keys())
	n, ok := s.Fence("set")
	require.True(t, ok)
	require.Equal(t, fencenode.Node{
		Marker: fencing.Marker{Phase: fencing.Voting, Me: fencing.Me{Fleet: "f", Run: s.RunID()}},
		Floor:  7, Tokens: []fencenode.KeyToken{{Name: "k", F: 9}},
	}, n)
	n.Tokens[0].F = 1
	require.Equal(t, `*[*[:2 "9"]]`, acquire(me, 10), "what was returned is a copy")
	n.Tokens[0].F = 9

	for why, lose := range map[string]func(){
		"deleted":        func() { s.Del("set") },
		"flushed":        s.Flush,
		"overwritten":    func() { s.Set("set", "x", 0); s.Del("set") },
		"restarted":      func() { require.NoError(t, s.Restart(true)); s.LoadScripts() },
		"of another run": func() { require.NoError(t, s.Restart(false)); s.LoadScripts() },
	} {
		s.Del("k")
		n.Marker.Me.Run = s.RunID()
		s.SetFence("set", n)
		require.Equal(t, `*[*[:3 "9"]]`, acquire("f:"+s.RunID(), 8), "an older state, brought back")
		lose()
		require.Equal(t, `*[*[:5 ""]]`, acquire("f:"+s.RunID(), 10), why)
	}
}

// TestClockOfTheServer: TIME, expiry, and the collection of tokens go by it.
func TestClockOfTheServer(t *testing.T) {
	s := StartN(t, 1)[0]
	me := voting(t, s)
	c := testkit.DialText(t, s.Addr())
	s.Set("k", "v", time.Minute)
	for _, ahead := range []time.Duration{-time.Hour, time.Hour} {
		s.SetClock(ahead)
		seconds, err := strconv.ParseInt(strings.Trim(strings.Fields(c.Do("TIME"))[0], `*["`), 10, 64)
		require.NoError(t, err)
		require.InDelta(t, time.Now().Add(ahead).Unix(), seconds, 60)
		require.Equal(t, `*[:1 ""]`, c.Do(fmt.Sprint("EVALSHA ", fencing.MemberSHA1, " 1 set collect ", me, " ", time.Minute.Microseconds())))
		n, _ := s.Fence("set")
		require.InDelta(t, time.Now().Add(ahead-time.Minute).UnixMicro(), float64(n.Floor), 60e6)
		require.Equal(t, ahead > 0, s.TTL("k") == NoKey, "a key that was to live for a minute")
	}
}

// TestFencedLocksCostNoAllocation: a server in the process of a measurement is silent.
func TestFencedLocksCostNoAllocation(t *testing.T) {
	s := StartN(t, 1)[0]
	me := []byte(voting(t, s))
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &conn{srv: s, now: s.now()}
	c.session.reset(&s.opts)
	word := func(text string) []byte { return []byte(text) }
	acquire := [][]byte{word("EVALSHA"), word(fencing.AcquireSHA1), word("2"), word("set"), word("k"), me, nil, word("0"), word("10000"), nil, word("n")}
	extend := [][]byte{word("EVALSHA"), word(fencing.ExtendSHA1), word("2"), word("set"), word("k"), me, word("n"), word("10000")}
	del := [][]byte{word("DEL"), word("k")}
	token, digits := uint64(1_000_000_000_000_000), make([]byte, 0, fencing.LastDigits)
	pair := func() {
		token++
		digits = strconv.AppendUint(digits[:0], token, 10)
		acquire[6], acquire[9] = digits, digits
		c.out = c.out[:0]
		c.execute(acquire)
		c.execute(extend)
		c.execute(del)
	}
	pair()
	require.Equal(t, ":1\r\n*1\r\n:1\r\n:1\r\n", string(c.out))
	require.Zero(t, testing.AllocsPerRun(100, pair))
}
