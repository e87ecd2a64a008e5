package frontend_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/server/frontend"
)

// TestHolderIsShown: operators see the holder of a lock: the user, the name of the connection, its address, and the
// server's name, as far as there are any. They never see the value.
func TestHolderIsShown(t *testing.T) {
	f := start(t, 3, withUsers(t, "app pw app:\n"), func(c *frontend.Config) { c.Name = "front1" })
	c := f.dial(t)
	c.expect("AUTH app pw => +OK\nSET k0 secret NX PX 60000 => +OK\nCLIENT SETNAME worker|1 => +OK")
	c.expect("SET k1 secret NX PX 60000 => +OK")
	c.DoWords("EVAL", "return redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', 60000)", "1", "k2", "secret")
	c.expect(`RL.LOCK k3 60000 VALUE secret KEEP => *["token" "secret"`)
	addr := c.Conn.LocalAddr().String()
	for key, want := range map[string]string{"k0": "app/" + addr + "@front1", "k1": "app/worker_1/" + addr + "@front1", "k2": "app/worker_1/" + addr + "@front1", "k3": "app/worker_1/" + addr + "@front1"} {
		seen, err := f.Client.Inspect(t.Context(), "app:"+key)
		require.NoError(t, err)
		require.Equal(t, want, seen.Holder, key)
		shown := c.DoWords("RL.INSPECT", key)
		require.Contains(t, shown, `"holder" "`+want)
		require.NotContains(t, shown, "secret")
		c.expect("GET " + key + " => \"secret\"\nDELEX " + key + " IFEQ secret => :1")
	}
	long := strings.Repeat("v", 232) // leaves no room for a holder
	require.Equal(t, "+OK", c.DoWords("SET", "k", long, "NX", "PX", "60000"))
	c.expect("GET k => \"" + long + "\"\nDEL k => :1")
}

// TestOperator: a user with the prefix * sees the locks of all users by their keys at the nodes, changes none, and reads no
// value.
func TestOperator(t *testing.T) {
	f := start(t, 3, withUsers(t, "app secret app:\nops secret *\n"))
	c, ops := f.dial(t), f.dial(t)
	c.expect(`
		AUTH app secret => +OK
		CLIENT SETNAME worker => +OK
		SET k v NX PX 60000 => +OK
		RL.LOCK s 60000 SHARED => *["token"
		RL.HELD => -NOPERM
	`)
	ops.expect(`
		AUTH ops secret => +OK
		PING => +PONG
		EXISTS app:k k => :1
		RL.INSPECT app:k => *[*["node"
		RL.HELD => *[*["key" "app:k" "holder" "app/worker
		GET app:k => -NOPERM
		SET app:free v NX PX 60000 => -NOPERM
		DEL app:k => -NOPERM
		EVAL return 0 => -NOPERM
		RL.WAIT app:k 10 => -NOPERM
		MULTI => -NOPERM
	`)
	c.expect("DEL k => :1")
	ops.expect(`RL.HELD => *[*["key" "app:s" "holder" "app/worker`)
	c.expect("WATCH s => +OK\nMULTI => +OK\nRL.HELD => -NOPERM\nEXEC => -EXECABORT")

	c.send("SET late v NX PX 60000", "AUTH ops secret") // behind it, so it is no operator's lock
	require.Equal(t, "+OK", c.Receive())
	require.Equal(t, "+OK", c.Receive())
	ops.expect(`RL.HELD => *[*["key" "app:late" "holder" "app/worker`)
}
