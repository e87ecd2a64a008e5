package resp

// Skipper reads over frames of any size without keeping them: of a payload it
// counts the bytes, of an aggregate the frames that are missing. The zero Skipper
// is ready for use and serves one stream. It holds no memory beside itself,
// however much the peer announces, and allocates nothing but a [ProtocolError].
//
// Its rules are those of a [Decoder] whose Limits are DefaultLine and MaxBulk,
// and which knows none for elements and depth: it needs no stack, since an
// aggregate merely puts more frames ahead.
type Skipper struct {
	failed *ProtocolError // what Skip returns until Reset
	frames int64          // missing until the frame's end; 0 between frames
	left   int64          // missing of a payload, its CR LF included
	passed int            // bytes of the frame that earlier calls have read over
	seen   int            // of the head that is incomplete; see head
	valued bool           // the frame's value has begun: attributes lie behind
}

// maxAhead bounds the frames that are announced and missing, far from overflow.
const maxAhead = 1 << 40

// skipLimits are for the heads that are one line. Headers of payloads and
// aggregates are read here.
var skipLimits = Limits{Line: DefaultLine, Bulk: MaxBulk, Elements: MaxElements, Depth: MaxDepth}

// Skip reads over the first bytes of buf, n of them, which may be dropped. A nil
// err says that the frame ends there, and the next call begins another one. If
// err is [ErrIncomplete], the next call has to pass the rest of buf with more
// bytes appended. That rest is part of a line, so it is less than DefaultLine+3
// bytes.
//
// If the frame is malformed, err is a [*ProtocolError], and stays it until Reset.
func (s *Skipper) Skip(buf []byte) (n int, err error) {
	if s.failed != nil {
		return 0, s.failed
	}
	if s.frames == 0 {
		*s = Skipper{frames: 1}
	}
	for s.frames > 0 {
		var k int
		var why Reason
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
			s.failed = &ProtocolError{Offset: s.passed + n + k, Reason: why}
			return 0, s.failed
		}
	}
	return n, nil
}

// Reset forgets the frame: the next call of Skip begins a new one.
func (s *Skipper) Reset() { *s = Skipper{} }

// head reads over what [head] calls one, but of a payload only the header.
func (s *Skipper) head(buf []byte) (n int, why Reason) {
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
		return 1, NegativeLength
	case kind.aggregate():
		return s.aggregate(kind, count, n)
	case count > MaxBulk:
		return 1, BulkTooLong
	case kind == Verbatim:
		const format = len("txt:")
		switch {
		case count < int64(format):
			return 1, BadVerbatim
		case len(buf) < n+format:
			return s.seen, incomplete
		case buf[n+format-1] != ':':
			return n, BadVerbatim
		}
	}
	s.left = count + 2
	return n, complete
}

// aggregate enters one whose header is n bytes long.
func (s *Skipper) aggregate(kind Kind, count int64, n int) (int, Reason) {
	inside := s.valued || s.frames > 1
	if kind == Push && inside {
		return 0, NestedPush
	}
	if count > maxAhead {
		return 1, TooManyElements
	}
	if kind.paired() {
		count *= 2
	}
	if s.frames += count; s.frames > maxAhead {
		return 1, TooManyElements
	}
	if kind != Attribute { // which stands beside a frame, not for one
		s.valued = s.valued || !inside
		s.frames--
	}
	return n, complete
}

// payload reads over what buf has of one, and of the CR LF behind it.
func (s *Skipper) payload(buf []byte) (n int, why Reason) {
	if s.left > 2 {
		n = int(min(s.left-2, int64(len(buf))))
		s.left -= int64(n)
	}
	for ; n < len(buf); n++ {
		if buf[n] != "\n\r"[s.left-1] {
			return n, BadTerminator
		}
		if s.left--; s.left == 0 {
			s.frames--
			return n + 1, complete
		}
	}
	return n, incomplete
}
