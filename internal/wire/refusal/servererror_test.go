package refusal

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCode(t *testing.T) {
	const failed = "ERR Error running script (call to f_c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00): "
	tests := []struct{ payload, want string }{
		{"", ""},
		{" ", ""},
		{"ERR", "ERR"},
		{"ERR unknown command", "ERR"},
		{"NOSCRIPT No matching script. Please use EVAL.", "NOSCRIPT"},
		{"WRONGPASS\r\nmore", "WRONGPASS"},
		{"lower case", "lower"},
		// Redis up to 6, and servers modelled on it: see TestRefusal for more.
		{failed + "@user_script:1: -NOREPLICAS", "NOREPLICAS"},
		{"@user_script:7: -MISCONF Redis is configured to save RDB snapshots", "MISCONF"},
		{"@user_script: 1: Unknown Redis command called from Lua script", "@user_script:"},

		// Failed scripts with no code in them.
		{failed + "@user_script:1: user_script:1: Script attempted to access nonexistent global variable 'x'", "ERR"},
		{failed + "@enable_strict_lua:15: user_script:1: boom", "ERR"},
		{failed + "@user_script:1: @user_script: 1: Wrong number of args calling Redis command From Lua script", "ERR"},
		{failed + "@user_script:: -OOM", "ERR"},
		{failed + "@user_script:x: -OOM", "ERR"},
		{failed + "@user_script:1:-OOM", "ERR"},
		{failed + "@user_script:1: - OOM", "ERR"},
		{failed + "@user_script:1: -Oom", "ERR"},
		{failed + "@user_script:1: I give up", "ERR"},
		{failed + "@user_script:", "ERR"},
		{failed + "@user_script:1", "ERR"},
		{failed + "@user_script:1: ", "ERR"},
		{"ERR Error compiling script (new function): user_script:1: '=' expected near 'x'", "ERR"},

		// Text quoted from arguments doesn't count.
		{"ERR unknown command 'user_script:1: -READONLY'", "ERR"},
		{"WRONGTYPE @user_script:1: -READONLY", "WRONGTYPE"},
		{failed + "@user_script:1: -ERR unknown command 'user_script:1: -READONLY x'", "ERR"},
	}
	for _, test := range tests {
		code := code([]byte(test.payload))
		assert.Equal(t, test.want, string(code), "%q", test.payload)
		assert.Equal(t, len(code), cap(code), "%q", test.payload)
	}
}

func TestServerError(t *testing.T) {
	for payload, want := range map[string]string{
		"ERR Error running script (call to f_0): @user_script:1: -READONLY You can't write.": "ERR Error running script (call to f_0): @user_script:1: -READONLY You can't write.",
		"ERR a\r\nb\x00\x1b[31mred\x7f\x9b":                                                  `ERR a\x0d\x0ab\x00\x1b[31mred\x7f\x9b`,
		`ERR back\slash`:                                                                     `ERR back\x5cslash`,
		"ERR \u202ereversed":                                                                 `ERR \xe2\x80\xaereversed`,
		"ERR 'quoted' \"twice\"":                                                             `ERR 'quoted' "twice"`,
		// Tokens and passwords are arguments.
		"ERR unknown command 'EVALSHA', with args beginning with: 'sha' '1' 'key' 'token'": "ERR unknown command 'EVALSHA'",
	} {
		bytes := []byte(payload)
		err := newServerError(bytes)
		clear(bytes)
		assert.Equal(t, string(code([]byte(payload))), err.Code)
		assert.Equal(t, want, err.Message)
		assert.EqualError(t, err, "resp: error reply: "+want)
	}
}

func TestServerErrorIsCut(t *testing.T) {
	for size := range 600 {
		for _, filler := range []string{"x", "\x00"} {
			err := newServerError([]byte(strings.Repeat(filler, size)))
			width := len(filler)
			if filler == "\x00" {
				width = len(`\x00`)
			}
			check := func(text string, limit int) {
				require.LessOrEqual(t, len(text), limit)
				whole, cut := strings.CutSuffix(text, "...")
				require.Equal(t, size*width > limit, cut)
				require.Zero(t, len(whole)%width, "an escape is cut in two")
				if cut {
					require.Greater(t, len(text), limit-width)
				}
			}
			check(err.Message, 256)
			check(err.Code, 64)
		}
	}
}
