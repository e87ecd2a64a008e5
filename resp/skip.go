package resp

// Skip reads over a frame of any size without keeping it, such as one beyond the Limits: of a payload it counts the
// bytes, of an aggregate the missing frames. Skip must begin where a frame begins, after [Decoder.Reset] if Decode
// has read a part of the frame, and be called until the frame ends.
//
// The first n bytes of buf have been read over and may be dropped. A nil err means: the frame ends there. If err is
// [ErrIncomplete], the next call has to pass the rest of buf with more bytes appended. This rest is part of a line,
// so it has fewer than DefaultLine+3 bytes.
//
// If the frame is malformed, err is a [*ProtocolError], as of all calls until Reset. The
// rules are those of Decode, with DefaultLine and MaxBulk as the only limits.
//
// Skip allocates nothing but the ProtocolError.
func (d *Decoder) Skip(buf []byte) (n int, err error) { return d.skipper.skip(buf) }

// skipper is the state of [Decoder.Skip]. It knows no limits for elements and depth: it needs no stack, since an
// aggregate only adds to the number of missing frames.
type skipper struct {
	failed *ProtocolError // what skip returns until Reset
	frames int64          // missing until the frame's end; 0 between frames
	left   int64          // missing of a payload, its CR LF included
	passed int            // bytes of the frame read over by earlier calls
	seen   int            // of the incomplete head; see head
	valued bool           // the frame's value has begun, after its attributes
}

// maxAhead bounds the announced and missing frames, far from overflow.
const maxAhead = 1 << 40

// skipLimits are for heads of one line. Headers of payloads and aggregates are read here.
var skipLimits = Limits{Line: DefaultLine, Bulk: MaxBulk, Elements: MaxElements, Depth: MaxDepth}

func (s *skipper) skip(buf []byte) (n int, err error) {
	if s.failed != nil {
		return 0, s.failed
	}
	if s.frames == 0 {
		*s = skipper{frames: 1}
	}
	for s.frames > 0 {
		var k int
		var why reason
		if s.left > 0 {
			k, why = s.payload(buf[n:])
		} else {
			k, why = s.head(buf[n:])
		}
		switch why {
		case complete:
			n += k
			s.seen = 0
		case incomplete:
			if s.left > 0 {
				n += k
			} else {
				s.seen = k
			}
			s.passed += n
			return n, ErrIncomplete
		default:
			s.failed = &ProtocolError{Offset: s.passed + n + k, Reason: string(why)}
			return 0, s.failed
		}
	}
	return n, nil
}

// head reads over a head as [head] does, but of a payload only the header.
func (s *skipper) head(buf []byte) (n int, why reason) {
	if len(buf) == 0 {
		return 0, incomplete
	}
	kind := Kind(buf[0])
	if !kind.aggregate() && kind != Bulk && kind != BulkError && kind != Verbatim {
		var v Value
		if n, why = head(buf, s.seen, &skipLimits, &v); why == complete {
			s.frames--
		}
		return n, why
	}
	count, end := shortNumber(buf)
	if end == 0 {
		if count, end, why = longNumber(buf, s.seen); why != complete {
			return end, why
		}
	}
	n = end + 2
	switch {
	case count == -1 && (kind == Bulk || kind == Array):
		s.frames--
		return n, complete
	case count < 0:
		return 1, negativeLength
	case kind.aggregate():
		return s.aggregate(kind, count, n)
	case count > MaxBulk:
		return 1, bulkTooLong
	case kind == Verbatim:
		const format = len("txt:")
		switch {
		case count < int64(format):
			return 1, badVerbatim
		case len(buf) < n+format:
			return s.seen, incomplete
		case buf[n+format-1] != ':':
			return n, badVerbatim
		}
	}
	s.left = count + 2
	return n, complete
}

// aggregate enters one with a header of n bytes.
func (s *skipper) aggregate(kind Kind, count int64, n int) (int, reason) {
	inside := s.valued || s.frames > 1
	if kind == Push && inside {
		return 0, nestedPush
	}
	if count > maxAhead {
		return 1, tooManyElements
	}
	if kind.paired() {
		count *= 2
	}
	if s.frames += count; s.frames > maxAhead {
		return 1, tooManyElements
	}
	if kind != Attribute { // an attribute stands beside a frame, not for one
		s.valued = s.valued || !inside
		s.frames--
	}
	return n, complete
}

// payload reads over what buf has of one, and of the CR LF after it.
func (s *skipper) payload(buf []byte) (n int, why reason) {
	if s.left > 2 {
		n = int(min(s.left-2, int64(len(buf))))
		s.left -= int64(n)
	}
	for ; n < len(buf); n++ {
		if buf[n] != "\n\r"[s.left-1] {
			return n, badTerminator
		}
		if s.left--; s.left == 0 {
			s.frames--
			return n + 1, complete
		}
	}
	return n, incomplete
}
