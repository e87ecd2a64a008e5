package resp_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/redlock-go/redlock/resp"
)

func TestAppend(t *testing.T) {
	tests := []struct {
		name string
		got  []byte
		want string
	}{
		{"array 0", resp.AppendArray(nil, 0), "*0\r\n"},
		{"array 9", resp.AppendArray(nil, 9), "*9\r\n"},
		{"array 10", resp.AppendArray(nil, 10), "*10\r\n"},
		{"array -1", resp.AppendArray(nil, -1), "*-1\r\n"},
		{"array -7", resp.AppendArray(nil, -7), "*-1\r\n"},
		{"bulk", resp.AppendBulk(nil, []byte("a\r\nb")), "$4\r\na\r\nb\r\n"},
		{"bulk of nil", resp.AppendBulk(nil, []byte(nil)), "$0\r\n\r\n"},
		{"bulk string", resp.AppendBulkString(nil, "hello, world"), "$12\r\nhello, world\r\n"},
		{"bulk string empty", resp.AppendBulkString(nil, ""), "$0\r\n\r\n"},
		{"map", resp.AppendHeader(nil, resp.Map, 12), "%12\r\n"},
		{"push", resp.AppendHeader(nil, resp.Push, 2), ">2\r\n"},
		{"verbatim", resp.AppendPayload(nil, resp.Verbatim, "txt:a\r\nb"), "=8\r\ntxt:a\r\nb\r\n"},
		{"error", resp.AppendLine(nil, resp.Error, "ERR two\r\nlines"), "-ERR two  lines\r\n"},
		{"null", resp.AppendLine(nil, resp.Null, ""), "_\r\n"},
		{"integer", resp.AppendInt(nil, -42), ":-42\r\n"},
	}
	for _, test := range tests {
		assert.Equal(t, test.want, string(test.got), test.name)
	}
}
