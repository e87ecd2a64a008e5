package resp_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/resp"
)

func TestDecodeGood(t *testing.T) {
	var d resp.Decoder // one for all, so that each leaves it clean for the next
	for _, test := range goodFrames {
		t.Run(test.name, func(t *testing.T) {
			var v resp.Value
			n, err := d.Decode([]byte(test.frame+"+NEXT\r\n"), &v)
			require.NoError(t, err)
			assert.Equal(t, len(test.frame), n)
			assert.Equal(t, test.want, tree(&v))
			agree(t, &d, []byte(test.frame))
		})
	}
}

func TestDecodeMalformed(t *testing.T) {
	for _, test := range badFrames {
		t.Run(test.name, func(t *testing.T) {
			var d resp.Decoder
			var v resp.Value
			n, err := d.Decode([]byte(test.frame), &v)
			require.Equal(t, &resp.ProtocolError{Offset: test.offset, Reason: string(test.reason)}, err)
			assert.Zero(t, n)
			checkMalformed(t, err, len(test.frame))

			_, again := d.Decode([]byte("+OK\r\n"), &v)
			require.Equal(t, err, again, "malformed until Reset")
			d.Reset()
			n, err = d.Decode([]byte("+OK\r\n"), &v)
			require.NoError(t, err)
			assert.Equal(t, 5, n)

			d.Reset()
			agree(t, &d, []byte(test.frame))
		})
	}
}

func TestDecodeLimits(t *testing.T) {
	tests := []struct {
		name, frame string
		limits      resp.Limits
		reason      resp.Reason // "" for none
	}{
		{"line exceeded", "+OK\r\n", resp.Limits{Line: 1}, resp.LineTooLong},
		{"line has no say in numbers", "*1\r\n:-123\r\n", resp.Limits{Line: 1}, ""},
		{"line raised", "+" + strings.Repeat("x", 5000) + "\r\n", resp.Limits{Line: 5000}, ""},
		{"line at its cap", "+" + strings.Repeat("x", resp.MaxLine) + "\r\n", resp.Limits{Line: 1 << 30}, ""},
		{"line beyond its cap", "+" + strings.Repeat("x", resp.MaxLine+1) + "\r\n", resp.Limits{Line: 1 << 30}, resp.LineTooLong},
		{"bulk exceeded", "$3\r\nabc\r\n", resp.Limits{Bulk: 2}, resp.BulkTooLong},
		{"verbatim counts its format", "=5\r\ntxt:a\r\n", resp.Limits{Bulk: 4}, resp.BulkTooLong},
		{"bulk beyond its cap", "$536870913\r\n", resp.Limits{Bulk: 1<<31 - 1}, resp.BulkTooLong},
		{"elements exceeded", "*2\r\n:1\r\n:2\r\n", resp.Limits{Elements: 1}, resp.TooManyElements},
		{"elements met in total", "*2\r\n*1\r\n:1\r\n:2\r\n", resp.Limits{Elements: 3}, ""},
		{"elements exceeded in total", "*2\r\n*1\r\n:1\r\n:2\r\n", resp.Limits{Elements: 2}, resp.TooManyElements},
		{"pairs exceeded", "%1\r\n:1\r\n:2\r\n", resp.Limits{Elements: 1}, resp.TooManyElements},
		{"attribute exceeded", "|1\r\n:1\r\n:2\r\n:3\r\n", resp.Limits{Elements: 2}, resp.TooManyElements},
		{"elements beyond their cap", "*1048577\r\n", resp.Limits{Elements: 1<<31 - 1}, resp.TooManyElements},
		{"depth exceeded", "*1\r\n*0\r\n", resp.Limits{Depth: 1}, resp.TooDeep},
		{"depth has no say in nulls", "*1\r\n*-1\r\n", resp.Limits{Depth: 1}, ""},
		{"depth of an attribute", "*1\r\n|0\r\n:1\r\n", resp.Limits{Depth: 1}, resp.TooDeep},
		{"depth at its cap", strings.Repeat("*1\r\n", resp.MaxDepth) + ":1\r\n", resp.Limits{Depth: 1000}, ""},
		{"depth beyond its cap", strings.Repeat("*1\r\n", resp.MaxDepth+1) + ":1\r\n", resp.Limits{Depth: 1000}, resp.TooDeep},
		{"negative means default", "*1\r\n+OK\r\n", resp.Limits{Line: -1, Bulk: -1, Elements: -1, Depth: -1}, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := resp.Decoder{Limits: test.limits}
			var v resp.Value
			n, err := d.Decode([]byte(test.frame), &v)
			if test.reason == "" {
				require.NoError(t, err)
				assert.Equal(t, len(test.frame), n)
				return
			}
			var malformed *resp.ProtocolError
			require.ErrorAs(t, err, &malformed)
			assert.Equal(t, string(test.reason), malformed.Reason)
		})
	}
}

// Callers who break the rules on how to go on get wrong answers, not a panic.
func TestDecodeMisuse(t *testing.T) {
	fragments := []string{
		"", "*", "*2\r\n", "*2\r\n:1\r\n+abc", "*3\r\n:1\r\n$5\r\nab", "+" + strings.Repeat("x", 900),
		"|1\r\n:1\r\n:2\r\n*3\r\n:1", ":1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n", strings.Repeat("*1\r\n", 8),
		strings.Repeat("#t\r\n", 300), strings.Repeat("_\r\n", 300), strings.Repeat("*-1\r\n", 200), "(\r\n", "$9\r\n",
	}
	for _, first := range fragments {
		for _, second := range fragments {
			for _, third := range fragments {
				d := resp.Decoder{Limits: resp.Limits{Depth: 5}}
				var v resp.Value
				for i, fragment := range []string{first, second, third} {
					d.Limits.Line = 1024 >> (3 * i)
					d.Limits.Elements = 64 >> (3 * i)
					if n, err := d.Decode([]byte(fragment), &v); err == nil {
						require.LessOrEqual(t, n, len(fragment))
						_ = tree(&v)
					}
				}
			}
		}
	}
}
