package fleet

import (
	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/resp"
)

// readBuffer holds the bytes of one read, and so bounds one reply. The largest one asked for is INFO; of a node that is
// up, an array of 128 integers, about half a KiB.
const readBuffer = 16 << 10

// stream is the frames that arrive on a connection.
type stream struct {
	in      []byte
	r, w    int // in[r:w] was read, and waits to be decoded
	decoder resp.Decoder
	value   resp.Value // the last frame, valid until the next
}

// next decodes the next frame.
func (s *stream) next() error {
	k, err := s.decoder.Decode(s.in[s.r:s.w], &s.value)
	if err == resp.ErrIncomplete && s.w-s.r == len(s.in) {
		return conn.ErrOversized
	}
	s.r += k
	return err
}

// shift makes room for more: what was not decoded moves to the beginning.
func (s *stream) shift() {
	s.w = copy(s.in, s.in[s.r:s.w])
	s.r = 0
}
