package fakeredis

import (
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDropReply(t *testing.T) {
	s := StartN(t, 1)[0]
	c := dial(t, "tcp", s.Addr())
	s.DropReply("SET", 1)
	c.send(encode("SET", "a", "1") + encode("PING") + encode("SET", "b", "2"))
	assert.Equal(t, "+PONG", c.receive())
	assert.Equal(t, "+OK", c.receive())
	assert.Equal(t, 2, s.Len(), "both were run")
}

func TestDropConn(t *testing.T) {
	s := StartN(t, 1)[0]
	c := dial(t, "tcp", s.Addr())
	s.DropConn("SET", 1)
	c.send(encode("PING") + encode("SET", "k", "v"))
	assert.Equal(t, "+PONG", c.receive())
	assert.Equal(t, "closed", c.receive())
	assert.Zero(t, s.Len(), "it was not run")
	assert.Equal(t, "+OK", dial(t, "tcp", s.Addr()).do("SET k v"))
}

func TestResetMidReply(t *testing.T) {
	s := StartN(t, 1)[0]
	c := dial(t, "tcp", s.Addr())
	s.ResetMidReply("ECHO", 1)
	c.send(encode("PING") + encode("ECHO", "0123456789"))
	assert.Equal(t, "+PONG", c.receive())
	const whole = "$10\r\n0123456789\r\n"
	half := make([]byte, (len(whole)+1)/2)
	_, err := io.ReadFull(c.r, half)
	require.NoError(t, err)
	assert.Equal(t, whole[:len(half)], string(half))
	assert.Equal(t, "reset", c.receive())
}

func TestWrongReply(t *testing.T) {
	s := StartN(t, 1)[0]
	c := dial(t, "tcp", s.Addr())
	s.WrongReply("set", ":1\r\n", 2)
	assert.Equal(t, ":1", c.do("SET k v"))
	assert.Equal(t, ":1", c.do("SET k w"))
	assert.Equal(t, "+OK", c.do("SET k x"))
	s.WrongReply("", "$-2\r\n", 0)
	c.send(encode("PING") + encode("NONSENSE"))
	raw := make([]byte, 10)
	_, err := io.ReadFull(c.r, raw)
	require.NoError(t, err)
	assert.Equal(t, "$-2\r\n$-2\r\n", string(raw))
	require.NoError(t, s.Heal())
	assert.Equal(t, "+PONG", c.do("PING"))
}

func TestErrorReply(t *testing.T) {
	s := StartN(t, 1)[0]
	c := dial(t, "tcp", s.Addr())
	s.ErrorReply("SET", "READONLY You can't write against a read only replica.", 1)
	s.ErrorReply("", "LOADING Redis is loading the dataset in memory", 1)
	assert.Contains(t, c.do("SET k v"), "-READONLY")
	assert.Contains(t, c.do("SET k v"), "-LOADING")
	assert.Zero(t, s.Len())
	assert.Equal(t, "+OK", c.do("SET k v"))
}

func TestInjectInDetail(t *testing.T) {
	s := StartN(t, 1)[0]
	c := dial(t, "tcp", s.Addr())
	s.Inject(Fault{On: "SET", Do: Reset, Applied: true, Skip: 2, Times: 1})
	require.Equal(t, "+OK", c.do("SET a 1"))
	require.Equal(t, "+OK", c.do("SET b 1"))
	require.Equal(t, "reset", c.do("SET c 1"))
	assert.Equal(t, 3, s.Len())

	c = dial(t, "tcp", s.Addr())
	s.Inject(Fault{On: "PING", Do: Instead, Raw: "+PANG\r\n", Chance: 0.5})
	seen := map[string]bool{}
	for len(seen) < 2 {
		seen[c.do("PING")] = true
	}
	assert.Equal(t, map[string]bool{"+PONG": true, "+PANG": true}, seen)
	assert.Panics(t, func() { s.Inject(Fault{On: "STE"}) })
	assert.Panics(t, func() { StartN(t, 1)[0].Deny("STE") })
}
