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
	const header = len("$8192\r\n")
	for _, frame := range []string{
		"+" + strings.Repeat("x", 1024) + "\r\n",
		"$8192\r\n" + strings.Repeat("x", 8192) + "\r\n",
		"*2\r\n$8192\r\n" + strings.Repeat("x", 8192) + "\r\n+" + strings.Repeat("y", 1000) + "\r\n",
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
			if err != ErrIncomplete || d.off < last {
				t.Fatalf("at %d it goes back from %d to %d: %v", end, last, d.off, err)
			}
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
			if end-d.seen > 1 {
				t.Fatalf("at %d it searches again from %d on", end, d.seen)
			}
		}
		n, err := d.Decode(buf, &v)
		require.NoError(t, err)
		require.Equal(t, len(buf), n)
	}
}
