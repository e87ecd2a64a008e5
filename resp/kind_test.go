package resp_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/redlock-go/redlock/resp"
)

func TestKindString(t *testing.T) {
	names := map[resp.Kind]string{
		'+': "simple string", '-': "error", ':': "integer", '$': "bulk", '*': "array",
		'_': "null", '#': "boolean", ',': "double", '(': "big number", '!': "bulk error",
		'=': "verbatim", '%': "map", '~': "set", '>': "push", '|': "attribute",
		0: "unknown kind 0x0", 'H': "unknown kind 0x48", 0xff: "unknown kind 0xff",
	}
	for kind, name := range names {
		assert.Equal(t, name, kind.String())
	}
}

func TestReasonString(t *testing.T) {
	assert.Equal(t, "bulk too long", resp.BulkTooLong.String())
	assert.Equal(t, "none", resp.Reason(0).String())
	assert.Equal(t, "unknown reason", resp.Reason(255).String())
	err := &resp.ProtocolError{Offset: 7, Reason: resp.BadNumber}
	assert.EqualError(t, err, "resp: malformed frame at byte 7: bad number")
}
