package luascript

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBounds: size, nesting, variables, keys and steps are bounded.
func TestBounds(t *testing.T) {
	for _, c := range []struct{ name, text, reason string }{
		{"size", strings.Repeat(" ", MaxSource+1), "the text has 8193 bytes, where 8192 is the most"},
		{"parentheses", "return " + strings.Repeat("(", 8000), "more than 64 levels of nesting"},
		{"not", "return " + strings.Repeat("not ", 2000) + "1", "more than 64 levels of nesting"},
		{"blocks", strings.Repeat("do ", 2000), "more than 64 levels of nesting"},
		{"tables", "return " + strings.Repeat("{", 8000), "more than 64 levels of nesting"},
		{"variables", strings.Repeat("local a\n", 201), "more than 200 local variables"},
		{"steps", "for i = 1, 3000 do local a = " + strings.Repeat("1+", 3000) + "1 end", "more than 20000 steps"},
	} {
		s, err := Parse([]byte(c.text))
		if err == nil {
			_, err = s.Classify(nil, nil, start)
		}
		require.ErrorContains(t, err, c.reason, c.name)
	}
	s, err := Parse([]byte("return redis.call('get', KEYS[1])"))
	require.NoError(t, err)
	_, err = s.Classify(make([][]byte, 17), nil, start)
	require.ErrorContains(t, err, "17 keys and 0 arguments, where 16 and 64 is the most")
}

// TestReplyIsBounded: a table twice in another one, and this again, is a reply of 2^40 items; a
// table with an argument many times is one of gigabytes.
func TestReplyIsBounded(t *testing.T) {
	for _, body := range []string{"a = {a, a}", "a = {a}", "a = ARGV[1] .. a", "a = {ARGV[1], ARGV[1], a}", "a = {err = a}"} {
		s, err := Parse([]byte("redis.call('get', KEYS[1]) local a = 'x' for i = 1, 40 do " + body + " end return {a, a}"))
		require.NoError(t, err)
		_, err = s.Classify(words("k", start), [][]byte{bytes.Repeat([]byte("v"), 200)}, start)
		if body != "a = {a}" {
			require.Error(t, err, body)
		}
	}
}

// TestLongTTL: a TTL beyond a time.Duration would be a short one, or one in the past, and the
// client would believe in its lock for ever.
func TestLongTTL(t *testing.T) {
	for _, command := range []string{"'set', KEYS[1], ARGV[1], 'nx', 'px', ARGV[2]", "'set', KEYS[1], ARGV[1], 'nx', 'exat', ARGV[2]"} {
		s, err := Parse([]byte("return redis.call(" + command + ")"))
		require.NoError(t, err)
		for _, n := range []string{"9007199254740991", "10000000000000", "9223372036854775", "9223372036854775807"} {
			_, err = s.Classify(words("k", start), words("v "+n, start), start)
			require.ErrorContains(t, err, "is out of range", n)
		}
	}
}

// TestCarriageReturn: it ends a line of Lua, so the text after it is no comment but a command.
func TestCarriageReturn(t *testing.T) {
	_, err := Parse([]byte("-- release\rredis.call('hset', KEYS[2], 'f', ARGV[2])\nreturn redis.call('del', KEYS[1])"))
	require.ErrorContains(t, err, "HSET on KEYS[2]")
	_, err = Parse([]byte("return redis.call('del', KEYS[1], 'a\rb')"))
	require.ErrorContains(t, err, "does not end on its line")
}

// TestScriptIsShared: one Script serves many calls at once, each with its own arguments.
func TestScriptIsShared(t *testing.T) {
	const text = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end\nreturn 0"
	require.Equal(t, "e0e1f9fabfc9d4800c877a703b823ac0578ff8db", Name([]byte("return 1")), "as Redis names it")
	source := []byte(text)
	s, err := Parse(source)
	require.NoError(t, err)
	clear(source) // the server reads the next command into the same memory
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			token := fmt.Appendf(nil, "client %d", i)
			for n := range 200 {
				p, err := s.Classify([][]byte{[]byte("k")}, [][]byte{token, fmt.Append(nil, n+1)}, start)
				if err != nil || !bytes.Equal(p.Token, token) || p.Rows[Owned].TTL.Milliseconds != int64(n+1) {
					t.Errorf("%v, %s", err, written(p))
					return
				}
			}
		})
	}
	all.Wait()
}
