package fakeredis

import (
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/test/testkit"
)

// A fault without its effect would make every test with it pass for nothing. So each is seen to
// happen here, and to end.

func TestFaultsOfReplies(t *testing.T) {
	const set = "SET k v"
	s := StartN(t, 1)[0]
	c := testkit.DialText(t, s.Addr())
	s.ErrorReply("", "LOADING wait", 1)
	assert.Equal(t, "-LOADING wait", c.Do(set))
	assert.Zero(t, s.Len(), "it was not run")
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
	for name, begin := range map[string]func(*Server){"hung": (*Server).Hang, "unread": (*Server).HangUnread, "mute": (*Server).Mute} {
		t.Run(name, func(t *testing.T) {
			s := StartN(t, 1)[0]
			c := tracker(t, s)
			register(t, c, "k")
			begin(s)
			s.Set("k", "v", 0)
			c.Send(testkit.Encode("SET", "j", "v"))
			c.RequireSilence()
			if name == "mute" {
				testkit.Await(t, "the command to run", func() bool { return s.Len() == 2 })
			} else {
				assert.Equal(t, 1, s.Len())
			}
			require.NoError(t, s.Heal())
			assert.ElementsMatch(t, []string{pushOfK, "+OK"}, []string{c.Receive(), c.Receive()})
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
