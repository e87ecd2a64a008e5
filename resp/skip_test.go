package resp_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/resp"
)

// widest is the Limits that Skip shares with Decode.
var widest = resp.Limits{Line: resp.DefaultLine, Bulk: resp.MaxBulk, Elements: resp.MaxElements, Depth: resp.MaxDepth}

// skipPieces passes Skip a stream in pieces, each at another place in memory,
// and checks what it leaves of them. It returns the length of the first frame.
func skipPieces(t *testing.T, s *resp.Decoder, stream []byte, step func(turn int) int) (n int, err error) {
	t.Helper()
	end := 0
	for turn := 0; ; turn++ {
		buf := append([]byte(nil), stream[n:end]...)
		k, err := s.Skip(buf)
		n += k
		if err != resp.ErrIncomplete {
			return n, err
		}
		require.Less(t, len(buf)-k, resp.DefaultLine+3)
		if end == len(stream) {
			return n, err
		}
		end = min(len(stream), end+step(turn))
	}
}

// sameAsDecoder compares Skip with Decode, for one frame in pieces.
func sameAsDecoder(t *testing.T, stream []byte, step func(turn int) int) {
	t.Helper()
	d := resp.Decoder{Limits: widest}
	var v resp.Value
	want, wantErr := d.Decode(stream, &v)
	var s resp.Decoder
	got, err := skipPieces(t, &s, stream, step)

	var why, wantWhy *resp.ProtocolError
	if errors.As(wantErr, &wantWhy) && (wantWhy.Reason == string(resp.TooDeep) || wantWhy.Reason == string(resp.TooManyElements)) {
		return // it has no such limits
	}
	if errors.As(err, &why) && why.Reason == string(resp.BadVerbatim) {
		require.Error(t, wantErr) // which is found in front of the payload, and so may be found before the payload's end
		return
	}
	require.Equal(t, wantErr, err)
	if err == nil {
		require.Equal(t, want, got)
	}
	if why != nil {
		_, again := s.Skip([]byte("+OK\r\n"))
		require.Equal(t, err, again, "until Reset")
		s.Reset()
		n, err := s.Skip([]byte("+OK\r\n"))
		require.NoError(t, err)
		require.Equal(t, 5, n)
	}
}

func TestSkipAgainstTheDecoder(t *testing.T) {
	frames := func(yield func(string)) {
		for _, f := range goodFrames {
			yield(f.frame)
		}
		for _, f := range badFrames {
			yield(f.frame)
		}
	}
	frames(func(frame string) {
		for _, pieces := range []int{1, 2, 3, 7, 1 << 20} {
			if len(frame) > 10_000 && pieces < 7 {
				continue
			}
			sameAsDecoder(t, []byte(frame+"+NEXT\r\n"), func(int) int { return pieces })
		}
	})
}

// FuzzSkip does the same with any stream, frame by frame.
func FuzzSkip(f *testing.F) {
	seed(func(frame []byte) {
		f.Add(frame, []byte{1})
		f.Add(append(frame, frame...), []byte{2, 5})
	})
	f.Fuzz(func(t *testing.T, stream, cuts []byte) {
		d := resp.Decoder{Limits: widest}
		var v resp.Value
		for {
			sameAsDecoder(t, stream, func(turn int) int { return step(cuts, turn) })
			n, err := d.Decode(stream, &v)
			if err != nil {
				return
			}
			stream = stream[n:]
		}
	})
}

// What no buffer holds is read over in pieces of any size: very many elements, large
// payloads, nesting without end.
func TestSkipWhatIsLarge(t *testing.T) {
	const deep = 1 << 18
	for name, frame := range map[string]string{
		"many keys":   ">2\r\n$10\r\ninvalidate\r\n*200000\r\n" + strings.Repeat("$1\r\nk\r\n", 200_000),
		"a large key": ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1048576\r\n" + strings.Repeat("\r\n$5\r\n+x", 1<<17) + "\r\n",
		"deep":        ">1\r\n" + strings.Repeat("*1\r\n", deep) + ":1\r\n",
		"attributes":  strings.Repeat("|0\r\n", deep) + "+OK\r\n",
	} {
		var s resp.Decoder
		const piece = 16 << 10
		stream := frame + "+NEXT\r\n"
		n := 0
		allocated := testing.AllocsPerRun(1, func() {
			var err error
			for n = 0; ; {
				var k int
				k, err = s.Skip([]byte(stream[n:min(len(stream), n+piece)]))
				if n += k; err != resp.ErrIncomplete {
					break
				}
			}
			if err != nil {
				t.Fatal(name, err)
			}
		})
		require.Equal(t, len(frame), n, name)
		require.LessOrEqual(t, allocated, float64(len(frame)/piece*2+10), "%s: only the copies of pieces", name)
	}
}

// Announced numbers are bounded, so that none of them overflows the count.
func TestSkipAnnouncedNumbers(t *testing.T) {
	for _, frame := range []string{
		"*9223372036854775807\r\n", "%9223372036854775807\r\n", "%4611686018427387904\r\n", "|1099511627776\r\n",
		"*1099511627777\r\n", strings.Repeat("*1099511627776\r\n", 2), "%549755813888\r\n%549755813888\r\n",
	} {
		var s resp.Decoder
		_, err := s.Skip([]byte(frame))
		var malformed *resp.ProtocolError
		require.ErrorAs(t, err, &malformed, frame)
		require.Equal(t, string(resp.TooManyElements), malformed.Reason, frame)
	}
	var s resp.Decoder
	_, err := s.Skip([]byte("*1099511627775\r\n"))
	require.Equal(t, resp.ErrIncomplete, err)
}
