package resp_test

import (
	"testing"

	"github.com/redlock-go/redlock/resp"
)

// BenchmarkDecode reads the replies to a batch of 64 operations: those to a SET, and those to a script.
func BenchmarkDecode(b *testing.B) {
	var batch []byte
	for range 32 {
		batch = append(batch, "+OK\r\n*2\r\n:1\r\n:0\r\n"...)
	}
	b.ReportAllocs()
	b.SetBytes(int64(len(batch)))
	var d resp.Decoder
	var v resp.Value
	for b.Loop() {
		for rest := batch; len(rest) > 0; {
			n, err := d.Decode(rest, &v)
			if err != nil {
				b.Fatal(err)
			}
			rest = rest[n:]
		}
	}
}

// BenchmarkAppend writes one command.
func BenchmarkAppend(b *testing.B) {
	b.ReportAllocs()
	var buf []byte
	for b.Loop() {
		buf = resp.AppendArray(buf[:0], 3)
		for _, word := range []string{"SET", "lock:orders", "0123456789abcdef0123"} {
			buf = resp.AppendBulkString(buf, word)
		}
	}
}
