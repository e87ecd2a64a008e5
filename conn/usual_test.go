package conn

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/resp"
)

// counting notes replies, those that are as usual and those that were decoded.
type counting struct{ got []string }

func (c *counting) AsUsual(_, i, n int) {
	for ; n > 0; n-- {
		c.got = append(c.got, fmt.Sprint(len(c.got) == i, " usual"))
		i++
	}
}

func (c *counting) Reply(_, i int, v *resp.Value) error {
	c.got = append(c.got, fmt.Sprint(len(c.got) == i, " ", string(v.Bytes), v.Int))
	return nil
}

func (*counting) Fail(int, int, error) {}
func (*counting) Done()                {}

// TestUsualReplies: each reply is handed on once and in its place, wherever the stream is cut, and one that is not as
// usual is decoded, as what follows it in its batch.
func TestUsualReplies(t *testing.T) {
	const usual = "+OK\r\n+OK\r\n:12\r\n+OK\r\n"
	for stream, want := range map[string]string{
		usual:                           "usual, usual, usual, usual",
		"+OK\r\n$-1\r\n:12\r\n+OK\r\n":  "usual, 0, 12, OK0",
		"+OK\r\n+OK\r\n:13\r\n+OK\r\n":  "usual, usual, 13, OK0",
		"-ERR\r\n+OK\r\n:12\r\n+OK\r\n": "ERR0, OK0, 12, OK0",
	} {
		twice := stream + usual // another batch behind it
		for cut := range len(twice) {
			n := newNode(&Fleet{cfg: Config{}.withDefaults()}, 0, Address{})
			n.up(nil, identity{})
			var batches []*counting
			for range 2 {
				c := new(counting)
				b := &Batch{Buf: []byte("x"), Replies: 4, Owner: c, Usual: []byte(usual), Counter: c, waiting: 1}
				n.owed.push(b)
				n.owed.sent(1)
				batches = append(batches, c)
			}
			for _, piece := range []string{twice[:cut], twice[cut:]} {
				n.w += copy(n.in[n.w:], piece)
				n.decode(0)
			}
			require.NoError(t, n.fault)
			require.Zero(t, n.owed.len)
			for i, want := range []string{want, "usual, usual, usual, usual"} {
				got := strings.Join(batches[i].got, ", ")
				require.NotContains(t, got, "false")
				got = strings.ReplaceAll(got, "true ", "")
				require.Equal(t, replied(want), replied(got)) // where the stream is cut, more may be as usual
				if stream == usual {
					require.Equal(t, want, got)
				}
			}
		}
	}
}

func replied(got string) string {
	return strings.NewReplacer("usual", "+", "OK0", "+", "12", "+").Replace(got)
}

// TestPartsAreNoProgress, be the reply as usual or not.
func TestPartsAreNoProgress(t *testing.T) {
	for usual, reply := range map[string]string{"+OK\r\n": "+OK\r\n", ":1\r\n": "$3\r\nabc\r\n"} {
		n := newNode(&Fleet{cfg: Config{}.withDefaults()}, 0, Address{})
		n.up(nil, identity{})
		c := new(counting)
		n.owed.push(&Batch{Buf: []byte("x"), Replies: 1, Owner: c, Usual: []byte(usual), Counter: c, waiting: 1})
		n.owed.sent(1)
		for i := range len(reply) {
			require.Zero(t, n.progress, reply[:i])
			n.w += copy(n.in[n.w:], reply[i:i+1])
			n.decode(clock.Instant(1 + i))
		}
		require.NoError(t, n.fault)
		require.Equal(t, clock.Instant(len(reply)), n.progress)
	}
}

// TestLongKeysCutOffNoNode: it may owe nearly as many replies as with short keys.
func TestLongKeysCutOffNoNode(t *testing.T) {
	n := newNode(&Fleet{cfg: Config{}.withDefaults()}, 0, Address{})
	n.up(nil, identity{})
	b := &Batch{Buf: make([]byte, 4<<10+100), Replies: 1}
	for !n.isBehind(b) {
		n.owed.push(b)
	}
	require.Greater(t, n.owed.len, defaultMaxInFlight*9/10)
}
