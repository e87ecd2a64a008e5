package resp_test

import (
	"math"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/resp"
)

// seed adds the tables' frames to a corpus, apart from the bulky ones.
func seed(add func(frame []byte)) {
	for _, test := range goodFrames {
		if len(test.frame) < 256 {
			add([]byte(test.frame))
		}
	}
	for _, test := range badFrames {
		if len(test.frame) < 256 {
			add([]byte(test.frame))
		}
	}
}

// small turns two fuzzed bytes into limits that fuzzed frames can reach.
func small(sizes, counts uint8) resp.Limits {
	return resp.Limits{
		Line:     int(sizes & 15),
		Bulk:     int(sizes >> 4),
		Elements: int(counts & 31),
		Depth:    int(counts >> 5),
	}
}

// FuzzDecode holds Decode against the reference, frame by frame, and its results
// against the limits.
func FuzzDecode(f *testing.F) {
	seed(func(frame []byte) {
		f.Add(frame, uint8(0), uint8(0))
		f.Add(frame, uint8(0x33), uint8(0x42))
	})
	f.Fuzz(func(t *testing.T, stream []byte, sizes, counts uint8) {
		d := resp.Decoder{Limits: small(sizes, counts)}
		lim := full(d.Limits)
		for {
			n := agree(t, &d, stream)
			if n == 0 {
				return
			}
			var v resp.Value
			_, err := d.Decode(stream, &v)
			require.NoError(t, err)
			elements, depth := measure(t, &v, lim)
			require.LessOrEqual(t, elements, lim.Elements)
			require.LessOrEqual(t, depth, lim.Depth)
			stream = stream[n:]
		}
	})
}

// measure returns how many elements are in v and how deep it is, and checks its
// parts.
func measure(t *testing.T, v *resp.Value, lim resp.Limits) (elements, depth int) {
	t.Helper()
	require.Equal(t, len(v.Bytes), cap(v.Bytes), "append would change the next frame")
	switch v.Kind {
	case resp.SimpleString, resp.Error, resp.Double, resp.BigNumber:
		require.LessOrEqual(t, len(v.Bytes), lim.Line)
	default:
		require.LessOrEqual(t, len(v.Bytes), lim.Bulk)
	}
	if isAggregate(v.Kind) && !v.Null {
		depth = 1
	}
	it := v.Elements()
	direct := 0
	for it.Next() {
		direct++
		e, d := measure(t, it.Value(), lim)
		elements += 1 + e
		depth = max(depth, 1+d)
	}
	if isAggregate(v.Kind) {
		require.EqualValues(t, v.Int, direct)
	}
	return elements, depth
}

// FuzzDecodePieces shows a decoder a stream piece by piece, each time at another
// place in memory, and demands what decoding it whole gives. The bytes of cuts
// are the sizes of the pieces, over and over.
func FuzzDecodePieces(f *testing.F) {
	seed(func(frame []byte) {
		f.Add(frame, []byte{1}, uint8(0), uint8(0))
		f.Add(append(frame, frame...), []byte{2, 5}, uint8(0x53), uint8(0x44))
	})
	f.Fuzz(func(t *testing.T, stream, cuts []byte, sizes, counts uint8) {
		limits := small(sizes, counts)
		pieces := resp.Decoder{Limits: limits}
		end := 0
		for turn := 0; ; turn++ {
			whole := resp.Decoder{Limits: limits}
			var want, got resp.Value
			wantN, wantErr := whole.Decode(stream, &want)

			buf := append([]byte(nil), stream[:end]...)
			n, err := pieces.Decode(buf, &got)
			switch {
			case err == nil:
				require.NoError(t, wantErr)
				require.Equal(t, wantN, n)
				require.Equal(t, tree(&want), tree(&got))
				stream = stream[n:]
				end -= n
			case err == resp.ErrIncomplete && end < len(stream):
				clear(buf) // nothing in the decoder may point here
				end += step(cuts, turn)
				end = min(end, len(stream))
			default:
				require.Equal(t, wantErr, err)
				return
			}
		}
	})
}

func step(cuts []byte, turn int) int {
	if len(cuts) == 0 {
		return 1
	}
	return max(1, int(cuts[turn%len(cuts)]))
}

// total reads everything there is in a value.
func total(v *resp.Value) (sum int64) {
	sum = v.Int + int64(len(v.Bytes))
	it := v.Elements()
	for it.Next() {
		sum += total(it.Value())
	}
	return sum
}

// FuzzEncode encodes one of everything and demands to read the same.
func FuzzEncode(f *testing.F) {
	f.Add("", []byte(nil), int64(0))
	f.Add("OK", []byte("token"), int64(30000))
	f.Add("a\r\nb", []byte("\r\n"), int64(math.MinInt64))
	f.Add("\x00\xff", []byte{0, 255}, int64(math.MaxInt64))
	f.Fuzz(func(t *testing.T, s string, b []byte, n int64) {
		if len(s) > 1000 || len(b) > 60_000 {
			t.Skip("beyond the limits")
		}
		buf := resp.AppendArray(nil, 4)
		buf = resp.AppendBulk(buf, b)
		buf = resp.AppendBulkString(buf, s)
		buf = resp.AppendBulk(buf, strconv.AppendInt(nil, n, 10))
		buf = resp.AppendArray(buf, -1)

		got, _ := decode(t, string(buf))
		require.Equal(t, []node{
			{Kind: '$', Bytes: string(b)}, {Kind: '$', Bytes: s}, {Kind: '$', Bytes: strconv.FormatInt(n, 10)},
			{Kind: '*', Null: true},
		}, tree(&got).Nodes)
	})
}
