package frontend_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// announced is a release script with a message to the waiters.
const announced = `
	if redis.call('get', KEYS[1]) == ARGV[1] then
		if redis.call('unlink', KEYS[1]) == 1 then redis.call('publish', ARGV[2], KEYS[1]) return 1 end
	end
	return 0`

// TestSubscribe: a subscribed client is woken by the release of a lock, and by it alone; it hears
// nothing of another user, and leaves nothing behind.
func TestSubscribe(t *testing.T) {
	f := start(t, 3, withUsers(t, "one pw a:\nother pw b:\n"))
	dial := func(user string) *client {
		c := f.dial(t)
		c.expect("AUTH " + user + " pw => +OK")
		return c
	}
	holder, old, modern, other := dial("one"), dial("one"), dial("one"), dial("other")
	old.expect(`SUBSCRIBE free more => *["subscribe" "free" :1]`)
	require.Equal(t, `*["subscribe" "more" :2]`, old.Receive())
	old.expect(`
		GET k => -ERR Can't execute 'get': only
		PING => *["pong" ""]
		PING x => *["pong" "x"]
		SUBSCRIBE free => *["subscribe" "free" :2]
	`)
	modern.expect(`
		HELLO 3 => %["server"
		SUBSCRIBE free => >["subscribe" "free" :1]
		PING => +PONG
		GET k => _
		PSUBSCRIBE * => -ERR this server knows no patterns of channels: SUBSCRIBE
	`)
	other.expect(`SUBSCRIBE free => *["subscribe" "free" :1]`)

	holder.expect("SET k v NX PX 60000 => +OK")
	other.expect(`UNSUBSCRIBE => *["unsubscribe" "free" :0]`)
	other.expect("SET k v NX PX 60000 => +OK")
	other.expect(`SUBSCRIBE free => *["subscribe" "free" :1]`)
	require.Equal(t, ":0", holder.DoWords("EVAL", announced, "1", "k", "w", "free"))
	require.Equal(t, ":0", holder.DoWords("EVAL", announced, "1", "none", "v", "free"))
	require.Equal(t, ":1", holder.DoWords("EVAL", announced, "1", "k", "v", "free"))
	for _, c := range []*client{old, modern} {
		require.Equal(t, `["message" "free" "k"]`, c.Receive()[1:], "nothing else came before")
	}
	other.expect(`
		PING => *["pong" ""]
		UNSUBSCRIBE => *["unsubscribe" "free" :0]
		UNSUBSCRIBE => *["unsubscribe" nil :0]
	`)
	require.Equal(t, ":1", other.DoWords("EVAL", announced, "1", "k", "v", "free"))
	old.expect(`
		UNSUBSCRIBE more => *["unsubscribe" "more" :1]
		RESET => +RESET
		AUTH one pw => +OK
		GET k => nil
	`)
	modern.expect(`UNSUBSCRIBE => >["unsubscribe" "free" :0]`)

	for i := range 40 { // beyond the room, in each of two ways
		c := dial("one")
		c.expect(`HELLO 3 => %["server"`)
		for i := range 8 {
			words := []string{"SUBSCRIBE"}
			for n := range 16 {
				words = append(words, fmt.Sprint(i, n, strings.Repeat("x", 4000)))
			}
			require.Contains(t, c.DoWords(words...), `["subscribe"`)
			for range 15 {
				require.Contains(t, c.Receive(), `["subscribe"`)
			}
		}
		c.expect("SUBSCRIBE more => -ERR too many channels")
		if i%2 == 0 { // the channels of one user are not those of another
			c.expect(`
				AUTH other pw => +OK
				UNSUBSCRIBE => >["unsubscribe" _ :0]
			`)
		}
		require.NoError(t, c.Conn.Close())
		f.awaitOpen(t, 4)
	}
}
