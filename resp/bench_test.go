package resp_test

import (
	"strings"
	"testing"

	"github.com/redlock-go/redlock/resp"
)

// ints is an array of n integers that are one digit each, the reply of a script
// that serves n locks at once.
func ints(n int) string {
	return string(resp.AppendArray(nil, n)) + strings.Repeat(":1\r\n", n)
}

func BenchmarkDecode(b *testing.B) {
	for _, bench := range []struct{ name, frame string }{
		{"ok", "+OK\r\n"},
		{"null", "$-1\r\n"},
		{"one", ":1\r\n"},
		{"integer", ":123456789\r\n"},
		{"bulk", "$20\r\n0123456789abcdefghij\r\n"},
		{"error", "-NOSCRIPT No matching script. Please use EVAL.\r\n"},
		{"ints-0", ints(0)},
		{"ints-1", ints(1)},
		{"ints-8", ints(8)},
		{"ints-128", ints(128)},
		{"bulks-8", "*8\r\n" + strings.Repeat("$3\r\nabc\r\n", 8)},
		{"nested", "*2\r\n*2\r\n:1\r\n:2\r\n*2\r\n:3\r\n:4\r\n"},
	} {
		b.Run(bench.name, func(b *testing.B) {
			var d resp.Decoder
			var v resp.Value
			buf := []byte(bench.frame)
			b.SetBytes(int64(len(buf)))
			b.ReportAllocs()
			for b.Loop() {
				if n, err := d.Decode(buf, &v); n != len(buf) || err != nil {
					b.Fatal(n, err)
				}
			}
		})
	}
}

func BenchmarkElements(b *testing.B) {
	for _, bench := range []struct{ name, frame string }{
		{"ints-8", ints(8)},
		{"ints-128", ints(128)},
		{"bulks-8", "*8\r\n" + strings.Repeat("$3\r\nabc\r\n", 8)},
	} {
		b.Run(bench.name, func(b *testing.B) {
			var d resp.Decoder
			var v resp.Value
			if _, err := d.Decode([]byte(bench.frame), &v); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				var sum int64
				it := v.Elements()
				for it.Next() {
					sum += it.Value().Int
				}
				if sum < 0 {
					b.Fatal(sum)
				}
			}
		})
	}
}

func BenchmarkAppend(b *testing.B) {
	key, token := "lock:orders", []byte("0123456789abcdef0123")
	b.Run("set", func(b *testing.B) {
		var buf []byte
		b.ReportAllocs()
		for b.Loop() {
			buf = resp.AppendArray(buf[:0], 6)
			buf = resp.AppendBulkString(buf, "SET")
			buf = resp.AppendBulkString(buf, key)
			buf = resp.AppendBulk(buf, token)
			buf = resp.AppendBulkString(buf, "NX")
			buf = resp.AppendBulkString(buf, "PX")
			buf = resp.AppendBulkInt(buf, 30000)
		}
	})
	b.Run("int", func(b *testing.B) {
		var buf []byte
		b.ReportAllocs()
		for b.Loop() {
			buf = resp.AppendBulkInt(buf[:0], 30000)
		}
	})
}
