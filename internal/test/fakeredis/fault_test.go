package fakeredis

import (
	"errors"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/base/errno"
	"github.com/redlock-go/redlock/internal/test/testkit"
)

// A fault without its effect would make every test with it pass for nothing. So each is seen to
// happen here, and to end.

func TestFaultsOfReplies(t *testing.T) {
	const set = "SET k v"
	for name, test := range map[string]struct {
		inject func(*Server)
		want   string // the answer to SET
		keys   int    // after it
	}{
		"wrong reply":     {func(s *Server) { s.WrongReply("set", ":1\r\n", 1) }, ":1", 1},
		"error":           {func(s *Server) { s.ErrorReply("SET", "OOM no", 1) }, "-OOM no", 0},
		"error of any":    {func(s *Server) { s.ErrorReply("", "LOADING wait", 1) }, "-LOADING wait", 0},
		"hang up before":  {func(s *Server) { s.DropConn("SET", 1) }, "closed", 0},
		"reset behind":    {func(s *Server) { s.Inject(Fault{On: "SET", Do: Reset, Applied: true, Times: 1}) }, "reset", 1},
		"reset mid-reply": {func(s *Server) { s.ResetMidReply("SET", 1) }, "reset", 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := StartN(t, 1)[0]
			c := testkit.DialText(t, s.Addr())
			test.inject(s)
			got := c.Do(set)
			if name == "reset mid-reply" && got != "reset" {
				got = c.Receive() // after the first half
			}
			assert.Equal(t, test.want, got)
			assert.Equal(t, test.keys, s.Len())
			assert.Equal(t, "+OK", testkit.DialText(t, s.Addr()).Do(set), "once")
		})
	}
	s := StartN(t, 1)[0]
	c := testkit.DialText(t, s.Addr())
	s.Inject(Fault{On: "SET", Do: Silence, Applied: true, Times: 1})
	c.Send(testkit.Encode("SET", "a", "1") + testkit.Encode("PING"))
	assert.Equal(t, "+PONG", c.Receive())
	assert.Equal(t, 1, s.Len(), "it was run")
	s.Inject(Fault{On: "SET", Do: Instead, Raw: ":9\r\n"})
	assert.Equal(t, []string{":9", ":9"}, []string{c.Do(set), c.Do(set)})
	require.NoError(t, s.Heal())
	assert.Equal(t, "+OK", c.Do(set))
	assert.Panics(t, func() { s.Inject(Fault{On: "STE"}) })
}

// TestOutages: pushes are a server's words as replies are, and none comes while it hangs or is muted.
func TestOutages(t *testing.T) {
	for name, test := range map[string]struct {
		begin func(*Server)
		runs  bool   // commands meanwhile
		ends  string // the last words on an old connection, if there are any
	}{
		"hung":    {(*Server).Hang, false, ""},
		"unread":  {(*Server).HangUnread, false, ""},
		"mute":    {(*Server).Mute, true, ""},
		"down":    {(*Server).Down, false, "closed"},
		"cut off": {(*Server).ResetConns, false, "reset"},
	} {
		t.Run(name, func(t *testing.T) {
			s := StartN(t, 1)[0]
			c := tracker(t, s)
			register(t, c, "k")
			test.begin(s)
			nc, err := net.Dial("tcp", s.Addr())
			assert.Equal(t, name == "down", errors.Is(err, errno.ConnRefused), "%v", err)
			if err == nil {
				_ = nc.Close()
			}
			if test.ends == "" {
				s.Set("k", "v", 0)
				c.Send(testkit.Encode("SET", "j", "v"))
				c.RequireSilence()
				if test.runs {
					testkit.Await(t, "the command to run", func() bool { return s.Len() == 2 })
				}
			}
			if !test.runs {
				assert.Equal(t, map[bool]int{true: 1}[test.ends == ""], s.Len())
			}
			require.NoError(t, s.Heal())
			if test.ends == "" {
				assert.ElementsMatch(t, []string{pushOfK, "+OK"}, []string{c.Receive(), c.Receive()})
			} else {
				assert.Equal(t, test.ends, c.Receive())
			}
			assert.Equal(t, "+PONG", testkit.DialText(t, s.Addr()).Do("PING"))
		})
	}
}

// A client of a server that reads nothing finds its socket full; one of a server that merely hangs
// does not.
func TestHangUnreadDoesNotRead(t *testing.T) {
	s := StartN(t, 1)[0]
	s.HangUnread()
	c := testkit.DialText(t, s.Addr())
	require.NoError(t, c.Conn.SetWriteDeadline(time.Now().Add(200*time.Millisecond)))
	_, err := c.Conn.Write(make([]byte, 64<<20))
	var timeout net.Error
	require.ErrorAs(t, err, &timeout)
	require.NoError(t, s.Heal())
	s.Hang()
	testkit.DialText(t, s.Addr()).Send(testkit.Encode("PING", string(make([]byte, 16<<20))))
}

func TestRestart(t *testing.T) {
	s := StartN(t, 1)[0]
	for _, empty := range []bool{false, true} {
		s.Set("k", "v", 0)
		c := testkit.DialText(t, s.Addr())
		before := c.Text("INFO replication")
		require.Contains(t, c.DoWords("SCRIPT", "LOAD", texts[release]), digests[release])
		require.NoError(t, s.Restart(empty))
		assert.Equal(t, "closed", c.Receive())
		c = testkit.DialText(t, s.Addr())
		assert.NotEqual(t, before, c.Text("INFO replication"), "it has the run_id")
		assert.Contains(t, c.Do("EVALSHA "+digests[release]+" 1 k t"), "-NOSCRIPT")
		_, kept := s.Get("k")
		assert.Equal(t, !empty, kept)
	}
	s.RejectConns("ERR max number of clients reached")
	c := testkit.DialText(t, s.Addr())
	assert.Equal(t, "-ERR max number of clients reached", c.Receive())
	assert.Equal(t, "closed", c.Receive())
}

// A hundred commands, sent one by one without waiting, are all answered about one delay later: it
// is latency, not slowness.
func TestDelayIsLatency(t *testing.T) {
	const delay = 200 * time.Millisecond
	s := StartN(t, 1)[0]
	c := testkit.DialText(t, s.Addr())
	require.Equal(t, "+PONG", c.Do("PING"))
	s.Delay(delay)
	start := time.Now()
	for range 100 {
		c.Send(testkit.Encode("SET", "k", "v"))
	}
	for range 100 {
		require.Equal(t, "+OK", c.Receive())
	}
	assert.GreaterOrEqual(t, time.Since(start), delay)
	assert.Less(t, time.Since(start), 100*delay)
}

// TestClockOfTheServer: TIME and expiry go by it.
func TestClockOfTheServer(t *testing.T) {
	s := StartN(t, 1)[0]
	c := testkit.DialText(t, s.Addr())
	s.Set("k", "v", time.Minute)
	for _, ahead := range []time.Duration{-time.Hour, time.Hour} {
		s.SetClock(ahead)
		seconds, err := strconv.ParseInt(strings.Trim(strings.Fields(c.Do("TIME"))[0], `*["`), 10, 64)
		require.NoError(t, err)
		require.InDelta(t, time.Now().Add(ahead).Unix(), seconds, 60)
		require.Equal(t, ahead > 0, s.TTL("k") == NoKey, "a key that was to live for a minute")
	}
}

// TestForeignScripts: a script that the server does not know, or with arguments that it does not take, is an error.
func TestForeignScripts(t *testing.T) {
	c := testkit.DialText(t, StartN(t, 1)[0].Addr())
	for _, words := range [][]string{{"EVAL", "return 1", "1", "k"}, {"SCRIPT", "LOAD", "return 1"}, {"EVAL", texts[release], "2", "k", "t"}} {
		assert.Contains(t, c.DoWords(words...), "-ERR fakeredis", words)
	}
	assert.Contains(t, c.Do("EVALSHA "+strings.Repeat("0", 40)+" 1 k t"), "-NOSCRIPT")
}
