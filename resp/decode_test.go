package resp

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/test/testkit"
)

// allocates requires an exact number of allocations. The race detector has its own.
func allocates(t *testing.T, want float64, f func()) {
	t.Helper()
	if !testkit.Race {
		require.Equal(t, want, testing.AllocsPerRun(100, f))
	}
}

// TestDecodeGood has one Decoder and one Value for all: each frame leaves them clean for the next.
func TestDecodeGood(t *testing.T) {
	var d Decoder
	var v Value
	for _, frame := range goodFrames {
		n, err := d.Decode([]byte(frame+"+NEXT\r\n"), &v)
		require.NoError(t, err, "%q", frame)
		require.Equal(t, len(frame), n, "%q", frame)
		buf := []byte(frame)
		require.Positive(t, agree(t, &d, buf), "%q", frame)
		first := max(0, len(buf)-256)
		allocates(t, 0, func() { // piece by piece
			for end := first; end < len(buf); end++ {
				if _, err := d.Decode(buf[:end], &v); err != ErrIncomplete {
					t.Error(err)
				}
			}
			if _, err := d.Decode(buf, &v); err != nil {
				t.Error(err)
			}
			_ = total(&v)
		})
	}
	for frame, want := range map[string]node{ // what a Value says of them
		"$-1\r\n":                       {Kind: Bulk, Null: true},
		"*-1\r\n":                       {Kind: Array, Null: true},
		"_\r\n":                         {Kind: Null, Null: true},
		"#t\r\n":                        {Kind: Boolean, Int: 1},
		"=7\r\ntxt:abc\r\n":             {Kind: Verbatim, Bytes: "abc"},
		"%1\r\n+a\r\n:1\r\n":            {Kind: Map, Int: 2, Nodes: []node{{Kind: SimpleString, Bytes: "a"}, {Kind: Integer, Int: 1}}},
		"|1\r\n+ttl\r\n:3600\r\n:5\r\n": {Kind: Integer, Int: 5},
	} {
		_, err := d.Decode([]byte(frame), &v)
		require.NoError(t, err, "%q", frame)
		require.Equal(t, want, tree(&v), "%q", frame)
	}
}

func total(v *Value) (sum int64) {
	sum = v.Int + int64(len(v.Bytes))
	it := v.Elements()
	for it.Next() {
		sum += total(it.Value())
	}
	return sum
}

// TestDecodeMalformed: the error is the only thing that is allocated, for any announced length.
func TestDecodeMalformed(t *testing.T) {
	for _, test := range badFrames {
		t.Run(test.name, func(t *testing.T) {
			var d Decoder
			var v Value
			buf := []byte(test.frame)
			n, err := d.Decode(buf, &v)
			require.Equal(t, &ProtocolError{Offset: test.offset, Reason: string(test.reason)}, err)
			assert.Zero(t, n)
			checkMalformed(t, err, len(buf))

			_, again := d.Decode([]byte("+OK\r\n"), &v)
			require.Equal(t, err, again, "malformed until Reset")
			d.Reset()
			n, err = d.Decode([]byte("+OK\r\n"), &v)
			require.NoError(t, err)
			assert.Equal(t, 5, n)

			d.Reset()
			agree(t, &d, buf)
			allocates(t, 1, func() {
				d.Reset()
				for range 2 {
					if _, err := d.Decode(buf, &v); err == nil {
						t.Error("well-formed")
					}
				}
			})
		})
	}
}

func TestDecodeLimits(t *testing.T) {
	for _, test := range []struct {
		name, frame string
		limits      Limits
		reason      reason // "" for none
	}{
		{"line exceeded", "+OK\r\n", Limits{Line: 1}, lineTooLong},
		{"line has no say in numbers", "*1\r\n:-123\r\n", Limits{Line: 1}, ""},
		{"line raised", "+" + strings.Repeat("x", 5000) + "\r\n", Limits{Line: 5000}, ""},
		{"line at its cap", "+" + strings.Repeat("x", MaxLine) + "\r\n", Limits{Line: 1 << 30}, ""},
		{"line beyond its cap", "+" + strings.Repeat("x", MaxLine+1) + "\r\n", Limits{Line: 1 << 30}, lineTooLong},
		{"bulk exceeded", "$3\r\nabc\r\n", Limits{Bulk: 2}, bulkTooLong},
		{"verbatim counts its format", "=5\r\ntxt:a\r\n", Limits{Bulk: 4}, bulkTooLong},
		{"bulk beyond its cap", "$536870913\r\n", Limits{Bulk: 1<<31 - 1}, bulkTooLong},
		{"elements exceeded", "*2\r\n:1\r\n:2\r\n", Limits{Elements: 1}, tooManyElements},
		{"elements met in total", "*2\r\n*1\r\n:1\r\n:2\r\n", Limits{Elements: 3}, ""},
		{"elements exceeded in total", "*2\r\n*1\r\n:1\r\n:2\r\n", Limits{Elements: 2}, tooManyElements},
		{"pairs exceeded", "%1\r\n:1\r\n:2\r\n", Limits{Elements: 1}, tooManyElements},
		{"attribute exceeded", "|1\r\n:1\r\n:2\r\n:3\r\n", Limits{Elements: 2}, tooManyElements},
		{"elements beyond their cap", "*1048577\r\n", Limits{Elements: 1<<31 - 1}, tooManyElements},
		{"depth exceeded", "*1\r\n*0\r\n", Limits{Depth: 1}, tooDeep},
		{"depth has no say in nulls", "*1\r\n*-1\r\n", Limits{Depth: 1}, ""},
		{"depth of an attribute", "*1\r\n|0\r\n:1\r\n", Limits{Depth: 1}, tooDeep},
		{"depth at its cap", strings.Repeat("*1\r\n", MaxDepth) + ":1\r\n", Limits{Depth: 1000}, ""},
		{"depth beyond its cap", strings.Repeat("*1\r\n", MaxDepth+1) + ":1\r\n", Limits{Depth: 1000}, tooDeep},
		{"negative means default", "*1\r\n+OK\r\n", Limits{Line: -1, Bulk: -1, Elements: -1, Depth: -1}, ""},
	} {
		d := Decoder{Limits: test.limits}
		var v Value
		n, err := d.Decode([]byte(test.frame), &v)
		if test.reason == "" {
			require.NoError(t, err, test.name)
			assert.Equal(t, len(test.frame), n, test.name)
			continue
		}
		var malformed *ProtocolError
		require.ErrorAs(t, err, &malformed, test.name)
		assert.Equal(t, string(test.reason), malformed.Reason, test.name)
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
				d := Decoder{Limits: Limits{Depth: 5}}
				var v Value
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

// TestDecodeWorkIsLinear: the work that a piece causes is what Decode scans from d.off or d.seen on. It is bounded by how
// far those lag behind the bytes already shown: by a header before a payload, and by nothing otherwise.
func TestDecodeWorkIsLinear(t *testing.T) {
	for _, frame := range []string{
		"+" + strings.Repeat("x", 1024) + "\r\n",
		"$8192\r\n" + strings.Repeat("x", 8192) + "\r\n",
		"*2\r\n$8192\r\n" + strings.Repeat("x", 8192) + "\r\n+" + strings.Repeat("y", 1000) + "\r\n",
		"*4096\r\n" + strings.Repeat("$3\r\nabc\r\n", 4096),
		"*8\r\n" + strings.Repeat("*8\r\n"+strings.Repeat("%1\r\n:1\r\n#t\r\n", 8), 8),
	} {
		var d Decoder
		var v Value
		buf, last := []byte(frame), 0
		for end := range len(buf) {
			_, err := d.Decode(buf[:end], &v)
			if err != ErrIncomplete || d.off < last {
				t.Fatalf("at %d it goes back from %d to %d: %v", end, last, d.off, err)
			}
			last = d.off
			line := bytes.IndexByte(buf[d.off:end], '\n')
			if line >= 0 && buf[d.off] == '$' { // the payload is stepped over, not searched
				require.LessOrEqual(t, line, len("$8192\r\n"))
			} else if end > d.off && end-d.seen > 1 {
				t.Fatalf("at %d it searches again from %d on", end, d.seen)
			}
		}
		n, err := d.Decode(buf, &v)
		require.NoError(t, err)
		require.Equal(t, len(buf), n)
	}
}

func TestAppend(t *testing.T) {
	for want, got := range map[string][]byte{
		"*0\r\n":                    AppendArray(nil, 0),
		"*9\r\n":                    AppendArray(nil, 9),
		"*10\r\n":                   AppendArray(nil, 10),
		"*-1\r\n":                   AppendArray(nil, -7),
		"$4\r\na\r\nb\r\n":          AppendBulk(nil, []byte("a\r\nb")),
		"$12\r\nhello, world\r\n":   AppendBulkString(nil, "hello, world"),
		"$0\r\n\r\n":                AppendBulk(AppendBulkString(nil, "")[:0], []byte(nil)),
		"%12\r\n":                   AppendHeader(nil, Map, 12),
		"=8\r\ntxt:a\r\nb\r\n":      AppendPayload(nil, Verbatim, "txt:a\r\nb"),
		"-ERR two  lines\r\n":       AppendLine(nil, Error, "ERR two\r\nlines"),
		"_\r\n":                     AppendLine(nil, Null, ""),
		":-42\r\n":                  AppendInt(nil, -42),
		":-9223372036854775808\r\n": AppendInt(nil, math.MinInt64),
	} {
		assert.Equal(t, want, string(got))
	}
	buf, token := make([]byte, 0, 1024), []byte("0123456789abcdef0123")
	allocates(t, 0, func() { _ = AppendBulk(AppendBulkString(AppendArray(buf[:0], 6), "SET"), token) })
}
