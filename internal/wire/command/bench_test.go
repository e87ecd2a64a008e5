package command

import (
	"testing"

	"github.com/redlock-go/redlock/resp"
)

// encoding writes the commands of n operations of a kind.
func encoding(b *testing.B, k Kind, n int) {
	ops := operands(n)
	b.ReportAllocs()
	var buf []byte
	for b.Loop() {
		buf = buf[:0]
		for left := ops; len(left) > 0; {
			m := Merge(k, Scripts, left, MaxKeys)
			buf = Append(buf, k, Scripts, left[:m], nil)
			left = left[m:]
		}
	}
}

func BenchmarkAppendAcquire(b *testing.B)  { encoding(b, Acquire, 1) }
func BenchmarkAppendReleases(b *testing.B) { encoding(b, Release, 64) }

// BenchmarkAnswers reads the reply to a call of 64 keys.
func BenchmarkAnswers(b *testing.B) {
	reply := resp.AppendArray(nil, 64)
	for range 64 {
		reply = append(reply, ":1\r\n"...)
	}
	b.ReportAllocs()
	var d resp.Decoder
	var v resp.Value
	for b.Loop() {
		if _, err := d.Decode(reply, &v); err != nil {
			b.Fatal(err)
		}
		var a Answers
		for a.Begin(Release, 64, &v); a.Next(); {
			if !a.Granted() || !a.Fits() {
				b.Fatal("not granted")
			}
		}
	}
}
