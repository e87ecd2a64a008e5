package fakeredis

import (
	"errors"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestHangHoldsCommandsUntilHeal(t *testing.T) {
	for name, hang := range map[string]func(*Server){"reading": (*Server).Hang, "deaf": (*Server).HangDeaf} {
		t.Run(name, func(t *testing.T) {
			s := StartN(t, 1)[0]
			before := dial(t, "tcp", s.Addr())
			require.Equal(t, "+PONG", before.do("PING"))
			hang(s)
			after := dial(t, "tcp", s.Addr())
			before.send(encode("SET", "a", "1"))
			after.send(encode("SET", "b", "1"))
			before.silent()
			after.silent()
			assert.Zero(t, s.Len())

			require.NoError(t, s.Heal())
			assert.Equal(t, "+OK", before.receive())
			assert.Equal(t, "+OK", after.receive())
			assert.Equal(t, 2, s.Len())
		})
	}
}

// A client of a deaf server finds its socket full; one of a server that merely
// hangs does not.
func TestHangDeafDoesNotRead(t *testing.T) {
	s := StartN(t, 1)[0]
	s.HangDeaf()
	c := dial(t, "tcp", s.Addr())
	require.NoError(t, c.nc.SetWriteDeadline(time.Now().Add(200*time.Millisecond)))
	_, err := c.nc.Write(make([]byte, 64<<20))
	var timeout net.Error
	require.ErrorAs(t, err, &timeout)
	assert.True(t, timeout.Timeout())

	require.NoError(t, s.Heal())
	s.Hang()
	c = dial(t, "tcp", s.Addr())
	require.NoError(t, c.nc.SetWriteDeadline(time.Now().Add(patience)))
	_, err = c.nc.Write([]byte(encode("ECHO", string(make([]byte, 16<<20)))))
	require.NoError(t, err)
}

func TestMuteKeepsReplies(t *testing.T) {
	s := StartN(t, 1)[0]
	c := dial(t, "tcp", s.Addr())
	s.Mute()
	c.send(encode("SET", "a", "1") + encode("QUIT"))
	eventually(t, func() bool { return s.Len() == 1 })
	c.silent()
	require.NoError(t, s.Heal())
	assert.Equal(t, "+OK", c.receive())
	assert.Equal(t, "+OK", c.receive())
	assert.Equal(t, "closed", c.receive())
}

func TestPartitionSwallowsConnections(t *testing.T) {
	s := StartN(t, 1)[0]
	before := dial(t, "tcp", s.Addr())
	require.Equal(t, "+PONG", before.do("PING"))
	s.Partition()
	before.send(encode("SET", "a", "1"))
	before.silent()
	after := dial(t, "tcp", s.Addr())
	assert.Equal(t, "+OK", after.do("SET b 1"))
	require.NoError(t, s.Heal())
	before.silent()
	assert.Equal(t, []string{"b"}, s.Keys())
}

func TestRefuseAndDown(t *testing.T) {
	s := StartN(t, 1)[0]
	c := dial(t, "tcp", s.Addr())
	require.Equal(t, "+OK", c.do("SET k v"))
	refused := func() bool {
		nc, err := net.Dial("tcp", s.Addr())
		if err == nil {
			_ = nc.Close()
		}
		return errors.Is(err, syscall.ECONNREFUSED)
	}
	s.Refuse()
	assert.True(t, refused())
	assert.Equal(t, "+PONG", c.do("PING"), "connections live on")
	require.NoError(t, s.Heal())
	assert.Equal(t, `"v"`, dial(t, "tcp", s.Addr()).do("GET k"))

	runID := s.RunID()
	s.Down()
	assert.True(t, refused())
	assert.Equal(t, "closed", c.receive())
	require.NoError(t, s.Heal())
	assert.Equal(t, `"v"`, dial(t, "tcp", s.Addr()).do("GET k"))
	assert.Equal(t, runID, s.RunID())
}

func TestRejectConns(t *testing.T) {
	s := StartN(t, 1)[0]
	s.RejectConns("ERR max number of clients reached")
	c := dial(t, "tcp", s.Addr())
	assert.Equal(t, "-ERR max number of clients reached", c.receive())
	assert.Equal(t, "closed", c.receive())
	require.NoError(t, s.Heal())
	assert.Equal(t, "+PONG", dial(t, "tcp", s.Addr()).do("PING"))
}

func TestRestart(t *testing.T) {
	s := StartN(t, 1)[0]
	s.LoadScripts()
	runID := s.RunID()
	for _, empty := range []bool{false, true} {
		s.Set("k", "v", 0)
		c := dial(t, "tcp", s.Addr())
		require.Equal(t, "+PONG", c.do("PING"))
		s.Hang()
		require.NoError(t, s.Restart(empty))
		assert.Equal(t, "closed", c.receive())

		c = dial(t, "tcp", s.Addr())
		assert.Contains(t, c.do("INFO server"), "run_id:"+s.RunID())
		assert.NotEqual(t, runID, s.RunID())
		assert.Equal(t, "*[:0]", c.do("SCRIPT EXISTS 74d05198eb16da02cc56a448a26c43e98960e9c2"))
		_, kept := s.Get("k")
		assert.Equal(t, !empty, kept)
		runID = s.RunID()
	}
}

func TestResetConns(t *testing.T) {
	s := StartN(t, 1)[0]
	c := dial(t, "tcp", s.Addr())
	require.Equal(t, "+PONG", c.do("PING"))
	s.ResetConns()
	assert.Equal(t, "reset", c.receive())
}

// A hundred commands, sent one by one without waiting, are all answered about
// one delay later: it is latency, not slowness.
func TestDelayIsLatency(t *testing.T) {
	const delay = 50 * time.Millisecond
	s := StartN(t, 1)[0]
	c := dial(t, "tcp", s.Addr())
	require.Equal(t, "+PONG", c.do("PING"))
	s.Delay(delay)
	start := time.Now()
	for range 100 {
		c.send(encode("SET", "k", "v"))
	}
	for range 100 {
		require.Equal(t, "+OK", c.receive())
	}
	assert.GreaterOrEqual(t, time.Since(start), delay)
	assert.Less(t, time.Since(start), 100*delay)

	// What comes when the delay has ended does not overtake.
	c.send(encode("ECHO", "slow"))
	eventually(t, func() bool { return s.Count("ECHO") == 1 })
	s.Delay(0)
	c.send(encode("ECHO", "fast") + encode("QUIT"))
	assert.Equal(t, `"slow"`, c.receive())
	assert.Equal(t, `"fast"`, c.receive())
	assert.Equal(t, "+OK", c.receive())
	assert.Equal(t, "closed", c.receive())
}

// Close does not wait for replies that are not due yet, nor for a server that
// is frozen.
func TestCloseDoesNotWait(t *testing.T) {
	s := StartN(t, 1)[0]
	s.Delay(time.Hour)
	delayed := dial(t, "tcp", s.Addr())
	delayed.send(encode("PING"))
	eventually(t, func() bool { return s.Count("PING") == 1 })
	s.HangDeaf()
	frozen := dial(t, "tcp", s.Addr())
	frozen.send(encode("PING"))
	eventually(t, func() bool { return s.Conns() == 2 })
	require.NoError(t, s.Close())
	assert.Contains(t, []string{"closed", "reset"}, delayed.receive())
	assert.Contains(t, []string{"closed", "reset"}, frozen.receive())
}
