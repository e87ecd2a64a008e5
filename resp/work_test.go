package resp

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The work that a piece causes is what Decode scans from d.off or d.seen on, so
// it is bounded by how far those lag behind the bytes already shown: by a header
// before a payload, and by nothing otherwise. Hence the total is linear.
func TestDecodeWorkIsLinear(t *testing.T) {
	const header = len("$65536\r\n")
	for _, frame := range []string{
		"+" + strings.Repeat("x", 1024) + "\r\n",
		"$65536\r\n" + strings.Repeat("x", 65536) + "\r\n",
		"*2\r\n$65536\r\n" + strings.Repeat("x", 65536) + "\r\n+" + strings.Repeat("y", 1000) + "\r\n",
		"*4096\r\n" + strings.Repeat(":1\r\n", 4096),
		"*4096\r\n" + strings.Repeat("$3\r\nabc\r\n", 4096),
		"*8\r\n" + strings.Repeat("*8\r\n"+strings.Repeat("%1\r\n:1\r\n#t\r\n", 8), 8),
	} {
		var d Decoder
		var v Value
		buf := []byte(frame)
		last := 0
		for end := range len(buf) {
			_, err := d.Decode(buf[:end], &v)
			require.Equal(t, ErrIncomplete, err)
			require.GreaterOrEqual(t, d.off, last, "goes back at %d", end)
			last = d.off
			if end == d.off {
				continue
			}
			switch Kind(buf[d.off]) {
			case Bulk, BulkError, Verbatim:
				line := bytes.IndexByte(buf[d.off:end], '\n')
				if line >= 0 {
					require.LessOrEqual(t, line, header)
					continue // the payload is stepped over, not searched
				}
			}
			require.LessOrEqual(t, end-d.seen, 1, "searches again at %d", end)
		}
		n, err := d.Decode(buf, &v)
		require.NoError(t, err)
		require.Equal(t, len(buf), n)
	}
}

// A line that has no end yet is not searched again: bytes that were seen may
// change, and it is still a line.
func TestDecodeSearchesNoByteTwice(t *testing.T) {
	var d Decoder
	var v Value
	buf := []byte("+" + strings.Repeat("x", 1000) + "\r\n")
	for end := range len(buf) {
		_, err := d.Decode(buf[:end], &v)
		require.Equal(t, ErrIncomplete, err)
		for i := 1; i < min(d.seen, 1000); i++ {
			buf[i] = '\n'
		}
	}
	_, err := d.Decode(buf, &v)
	require.NoError(t, err)
}
