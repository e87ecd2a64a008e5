package resp_test

import (
	"math"
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
		{"bulk of nil", resp.AppendBulk(nil, nil), "$0\r\n\r\n"},
		{"bulk string", resp.AppendBulkString(nil, "hello, world"), "$12\r\nhello, world\r\n"},
		{"bulk string empty", resp.AppendBulkString(nil, ""), "$0\r\n\r\n"},
		{"bulk 42", resp.AppendBulkInt(nil, 42), "$2\r\n42\r\n"},
		{"bulk 0", resp.AppendBulkInt(nil, 0), "$1\r\n0\r\n"},
		{"bulk -5", resp.AppendBulkInt(nil, -5), "$2\r\n-5\r\n"},
		{"bulk least", resp.AppendBulkInt(nil, math.MinInt64), "$20\r\n-9223372036854775808\r\n"},
		{"bulk greatest", resp.AppendBulkInt(nil, math.MaxInt64), "$19\r\n9223372036854775807\r\n"},
	}
	for _, test := range tests {
		assert.Equal(t, test.want, string(test.got), test.name)
	}
}
