package conn

import (
	"errors"
	"fmt"
	"time"

	"github.com/redlock-go/redlock/resp"
)

// readBuffer holds the bytes of one read, and so bounds one reply, unless Config.MaxReply is more. The largest one of a
// handshake is INFO; of a client of locks, 128 refusals with a fencing token each, about 4 KiB.
const readBuffer = 16 << 10

// maxBulk bounds a payload: the name of a key of 4 KiB, and of one beside it.
const maxBulk = 4<<10 + 128

func newDecoder(maxReply int) resp.Decoder {
	return resp.Decoder{Limits: resp.Limits{Line: 1 << 10, Bulk: max(maxBulk, maxReply), Elements: max(1<<10, maxReply/4), Depth: 4}}
}

// stream is the frames arriving on a connection.
type stream struct {
	in      []byte
	at      int // where the last frame begins, which ends at r
	r, w    int // in[r:w] was read, and waits to be decoded
	decoder resp.Decoder
	value   resp.Value // the last frame, valid until the next
}

// next decodes the next frame.
func (s *stream) next() error {
	k, err := s.decoder.Decode(s.in[s.r:s.w], &s.value)
	if err == resp.ErrIncomplete && s.w-s.r == len(s.in) {
		return ErrOversized
	}
	s.at = s.r
	s.r += k
	if malformed, is := err.(*resp.ProtocolError); is && malformed.IsLimit() {
		err = fmt.Errorf("%w: %w", ErrOversized, err)
	}
	return err
}

// frame is the bytes of the last frame.
func (s *stream) frame() []byte { return s.in[s.at:s.r] }

// shift makes room for more: what was not decoded moves to the beginning.
func (s *stream) shift() {
	s.w = copy(s.in, s.in[s.r:s.w])
	s.r = 0
}

// A node pushes a key once for each reply of a tracked read, and besides when others delete all keys. More pushes
// keep the node's reader from the other nodes.
const (
	firstPushes = 8 << 10  // of a connection, beyond its replies
	mostPushes  = 64 << 10 // for replies in the past
	pushEvery   = time.Millisecond
)

var errFlood = errors.New("conn: node pushes more than it was asked to track")

// push counts the decoded value, a push, and hands it to the owner if it is within the bounds.
func (n *node) push() {
	if n.pushes == 0 {
		now := n.fleet.now()
		n.pushes, n.pushed = min(int(now.Sub(n.pushed)/pushEvery), firstPushes), now
	}
	n.pushes--
	on := n.fleet.cfg.OnPush
	switch {
	case !n.id.resp3:
		n.fault = &resp.ProtocolError{Reason: "push in RESP2"}
	case n.pushes < 0:
		n.fault = errFlood
	default:
		if isEmptied(&n.value) {
			n.doubt()
		}
		if on != nil {
			on(n.index, &n.value)
		}
	}
}
