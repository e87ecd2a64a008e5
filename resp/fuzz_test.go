package resp

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// seed adds the tables' frames to a corpus, apart from the bulky ones.
func seed(add func(frame []byte)) {
	all := goodFrames[:len(goodFrames):len(goodFrames)]
	for _, test := range badFrames {
		all = append(all, test.frame)
	}
	for _, frame := range all {
		if len(frame) < 256 {
			add([]byte(frame))
		}
	}
}

// small turns two fuzzed bytes into limits that fuzzed frames can reach.
func small(sizes, counts uint8) Limits {
	return Limits{
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
		d := Decoder{Limits: small(sizes, counts)}
		lim := full(d.Limits)
		for {
			n := agree(t, &d, stream)
			if n == 0 {
				return
			}
			var v Value
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
func measure(t *testing.T, v *Value, lim Limits) (elements, depth int) {
	t.Helper()
	require.Equal(t, len(v.Bytes), cap(v.Bytes), "append would change the next frame")
	switch v.Kind {
	case SimpleString, Error, Double, BigNumber:
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
		pieces := Decoder{Limits: limits}
		end := 0
		for turn := 0; ; turn++ {
			whole := Decoder{Limits: limits}
			var want, got Value
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
			case err == ErrIncomplete && end < len(stream):
				clear(buf) // nothing in the decoder may point here
				step := 1
				if len(cuts) > 0 {
					step = max(1, int(cuts[turn%len(cuts)]))
				}
				end = min(end+step, len(stream))
			default:
				require.Equal(t, wantErr, err)
				return
			}
		}
	})
}
