//go:build !race

package resp_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/resp"
)

// shouldAllocate runs f many times and demands an exact number of allocations.
func shouldAllocate(t *testing.T, want float64, f func()) {
	t.Helper()
	require.Equal(t, want, testing.AllocsPerRun(100, f))
}

func TestDecodeAllocatesNothing(t *testing.T) {
	for _, test := range goodFrames {
		t.Run(test.name, func(t *testing.T) {
			var d resp.Decoder
			buf := []byte(test.frame)
			shouldAllocate(t, 0, func() {
				var v resp.Value
				if _, err := d.Decode(buf, &v); err != nil {
					t.Error(err)
				}
				_ = total(&v)
			})
		})
	}
}

func TestDecodeInPiecesAllocatesNothing(t *testing.T) {
	var d resp.Decoder
	buf := []byte("*3\r\n:1\r\n$5\r\nhello\r\n%1\r\n+key\r\n|1\r\n:1\r\n:2\r\n,1.5\r\n")
	shouldAllocate(t, 0, func() {
		var v resp.Value
		for end := range len(buf) {
			if _, err := d.Decode(buf[:end], &v); err != resp.ErrIncomplete {
				t.Error(err)
			}
		}
		if _, err := d.Decode(buf, &v); err != nil {
			t.Error(err)
		}
	})
}

// Malformed input allocates the error once, and nothing else, for any announced length.
func TestDecodeMalformedAllocatesTheError(t *testing.T) {
	for _, test := range badFrames {
		t.Run(test.name, func(t *testing.T) {
			var d resp.Decoder
			buf := []byte(test.frame)
			shouldAllocate(t, 1, func() {
				var v resp.Value
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

func TestAppendAllocatesNothing(t *testing.T) {
	buf := make([]byte, 0, 1024)
	token := []byte("0123456789abcdef0123")
	shouldAllocate(t, 0, func() {
		out := resp.AppendArray(buf[:0], 6)
		out = resp.AppendBulkString(out, "SET")
		_ = resp.AppendBulk(out, token)
	})
}
