package resp

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func decode(t *testing.T, frame string) (v Value, buf []byte) {
	t.Helper()
	var d Decoder
	buf = []byte(frame)
	n, err := d.Decode(buf, &v)
	require.NoError(t, err)
	require.Equal(t, len(buf), n)
	return v, buf
}

func TestValueIsOK(t *testing.T) {
	for frame, want := range map[string]bool{
		"+OK\r\n": true, "+ok\r\n": false, "+OK \r\n": false, "+\r\n": false,
		"$2\r\nOK\r\n": false, "-OK\r\n": false, "$-1\r\n": false, ":1\r\n": false, "*1\r\n+OK\r\n": false,
	} {
		v, _ := decode(t, frame)
		assert.Equal(t, want, v.IsOK(), "%q", frame)
	}
	assert.False(t, new(Value).IsOK())
}

// The names end up in errors and logs.
func TestNames(t *testing.T) {
	assert.Equal(t, "bulk error, map, push", BulkError.String()+", "+Map.String()+", "+Push.String())
	for _, kind := range "+-:$*_#,(!=%~>|" {
		assert.NotContains(t, Kind(kind).String(), "unknown")
	}
	assert.Equal(t, "unknown kind 0x48", Kind('H').String())
}

func TestElementsAtTheEnds(t *testing.T) {
	v, _ := decode(t, "*2\r\n:5\r\n$1\r\na\r\n")
	it := v.Elements()
	assert.Equal(t, Value{}, *it.Value(), "before the first")
	require.True(t, it.Next())
	assert.EqualValues(t, 5, it.Value().Int)
	require.True(t, it.Next())
	assert.Equal(t, "a", string(it.Value().Bytes))
	for range 3 {
		require.False(t, it.Next())
		assert.Equal(t, Value{}, *it.Value(), "after the last")
	}
	again := v.Elements()
	assert.True(t, again.Next(), "iterators are independent")

	var zero Elements
	assert.False(t, zero.Next())
	for _, frame := range []string{":1\r\n", "$1\r\na\r\n", "*-1\r\n", "*0\r\n", "_\r\n"} {
		v, _ = decode(t, frame)
		it = v.Elements()
		assert.False(t, it.Next(), "%q", frame)
	}
}

// Bytes that change under a Value are the caller's mistake; it must not panic.
func TestElementsOverChangedBytes(t *testing.T) {
	const frame = "*4\r\n:1\r\n$3\r\nabc\r\n*2\r\n:1\r\n%1\r\n:2\r\n:3\r\n|1\r\n:1\r\n:2\r\n+x\r\n"
	for i := range len(frame) {
		for _, c := range []byte("\x00\r\n0129-?:$*%|+_#,(!=~>\xff") {
			v, buf := decode(t, frame)
			buf[i] = c
			require.NotPanics(t, func() { tree(&v) })
		}
	}
}
