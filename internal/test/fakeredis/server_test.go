package fakeredis

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/test/testkit"
	said "github.com/redlock-go/redlock/internal/wire/command"
)

func TestServerCanBeLookedInto(t *testing.T) {
	s := StartN(t, 1)[0]
	var heard [][]string
	s.OnCommand(func(_ int64, args []string) { heard = append(heard, args) })
	c := testkit.DialText(t, s.Addr())
	require.Equal(t, "+OK", c.Do("SET k v PX 100000"))
	require.Equal(t, "+OK", c.Do("set forever v"))
	require.Equal(t, "+OK", c.Do("SELECT 1"))
	require.Equal(t, "+OK", c.Do("SET elsewhere v"))
	s.OnCommand(nil)
	assert.Len(t, heard, 4)
	assert.Equal(t, []string{"SET", "k", "v", "PX", "100000"}, heard[0])

	value, ok := s.Get("k")
	assert.True(t, ok)
	assert.Equal(t, "v", value)
	_, ok = s.Get("elsewhere")
	assert.False(t, ok, "that is another database")
	assert.InDelta(t, 100*time.Second, s.TTL("k"), float64(10*time.Second))
	assert.Equal(t, NoTTL, s.TTL("forever"))
	assert.Equal(t, NoKey, s.TTL("nothing"))
	assert.Equal(t, 3, s.Len())
	assert.EqualValues(t, 3, s.Count("set"))
	assert.Equal(t, 1, s.Conns())

	s.Set("planted", "v", 50*time.Second)
	s.Del("k", "nothing")
	s.Plant("foreign", "list")
	require.Equal(t, "+OK", c.Do("SELECT 0"))
	assert.Equal(t, []string{"nil", `"v"`}, []string{c.Do("GET k"), c.Do("GET planted")})
	assert.Contains(t, c.Do("GET foreign"), "-WRONGTYPE")
	s.Flush()
	assert.Zero(t, s.Len())
	assert.Equal(t, "+OK", c.Do("QUIT"))
	testkit.Await(t, "the connection to end", func() bool { return s.Conns() == 0 })
}

func TestCommandsAndKeysCanBeForbidden(t *testing.T) {
	s := StartN(t, 1, Options{Flavor: Valkey9})[0]
	s.LoadScripts()
	c := testkit.DialText(t, s.Addr())
	s.DenyScripts()
	for _, line := range []string{"EVAL x 0", "EVALSHA x 0", "SCRIPT LOAD x"} {
		assert.Contains(t, c.Do(line), "-NOPERM")
	}
	s.Allow()
	s.AllowKeys("lk:")
	release := "EVALSHA " + said.ReleaseSHA1
	for _, line := range []string{"SET k v", "DEL lk:a k", release + " 2 lk:a k t t"} {
		assert.Regexp(t, "-NOPERM.* key", c.Do(line), line)
	}
	for _, line := range []string{"SET lk:a v", "DEL lk:a lk:b", release + " 1 lk:a k"} {
		assert.NotContains(t, c.Do(line), "-NOPERM", line)
	}
}

func TestReplicas(t *testing.T) {
	s := StartN(t, 1, Options{Mode: "cluster"})[0]
	c := testkit.DialText(t, s.Addr())
	assert.Contains(t, c.Do("HELLO"), `"mode" "cluster" "role" "master"`)
	s.Demote()
	assert.Contains(t, c.Do("HELLO"), `"role" "replica"`)
	assert.Contains(t, c.Do("INFO replication"), "role:slave")
}
