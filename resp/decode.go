package resp

// Decoder reads frames. The zero Decoder is ready for use, with the default [Limits]. It has no buffer and keeps no
// reference to the caller's, only how far it has scanned an incomplete frame. So a frame costs time linear in its
// length plus the number of calls, however small its pieces. A Decoder serves one stream and one goroutine at a time.
type Decoder struct {
	// Limits may be changed between frames, not inside one.
	Limits Limits

	failed *ProtocolError // what Decode returns until Reset
	busy   bool           // inside a frame, or failed
	level  int            // of todo: how many aggregates are open
	root   int            // offset of the value, after its attributes
	off    int            // offset of the first head not yet read
	seen   int            // offset up to which its line has been searched
	spare  int            // elements left of Limits.Elements
	todo   [1 + MaxDepth]int32
}

// Decode reads one frame from the start of buf into v and returns its length, including the attributes before it. v
// borrows from buf, see [Value]; it holds nothing of use if err isn't nil.
//
// If buf doesn't hold the whole frame, err is [ErrIncomplete], and the next call has to pass the same bytes with more
// of them appended. They may have been moved to another slice meanwhile. To give the frame up instead, call Reset.
//
// If the frame is malformed or beyond the Limits, err is a [*ProtocolError], as of all calls until Reset. The fault is
// found at the first wrong byte or shortly after, however the frame arrived in pieces.
//
// Decode allocates nothing but the ProtocolError.
func (d *Decoder) Decode(buf []byte, v *Value) (n int, err error) {
	// It reads one head after the other; todo counts the frames missing at each level of nesting, with the value
	// itself, and any attributes before it, at level 0.
	lim := d.Limits.withDefaults()
	if !d.busy {
		d.busy = true
		d.level, d.root, d.off, d.seen = 0, 0, 0, 0
		d.spare = lim.Elements
		d.todo[0] = 1
	}
	if d.failed != nil {
		return 0, d.failed
	}
	if len(buf) < d.seen {
		return 0, ErrIncomplete // not even what was there before
	}
	var nested Value
	for d.todo[0] > 0 {
		e := &nested
		switch {
		case d.level == 0:
			e, d.root = v, d.off
		case d.todo[d.level] == 0:
			d.level-- // the aggregate is complete
			d.todo[d.level]--
			continue
		}
		n, why := head(buf[d.off:], d.seen-d.off, &lim, e)
		switch {
		case why == incomplete:
			d.seen = d.off + n
			return 0, ErrIncomplete
		case why != complete:
			return 0, d.fail(d.off+n, why)
		}
		if !e.Kind.aggregate() || e.Null {
			d.todo[d.level]--
		} else if at, why := d.open(e, &lim); why != complete {
			return 0, d.fail(d.off+at, why)
		}
		d.off += n
	}
	d.busy = false
	if Kind(buf[d.root]).aggregate() {
		// Its header is read once more, since the scan may have begun in an earlier call.
		n, _ := head(buf[d.root:d.off], 0, &hardLimits, v)
		if !v.Null {
			v.body = buf[d.root+n : d.off : d.off]
		}
	}
	return d.off, nil
}

// Reset forgets an incomplete or malformed frame: the next call of Decode begins a new one. The Limits stay.
func (d *Decoder) Reset() {
	d.busy = false
	d.failed = nil
}

// open enters an aggregate after its header has been read into e, if the limits have room for it. Otherwise it
// returns where in the header they don't.
func (d *Decoder) open(e *Value, lim *Limits) (at int, why reason) {
	count := int(e.Int)
	switch {
	case e.Kind == Push && d.level > 0:
		return 0, nestedPush
	case d.level >= lim.Depth:
		return 0, tooDeep
	}
	if e.Kind == Attribute {
		// It stands beside a frame of this level, not for one, so one more is to come. It is charged for: attributes
		// of no pairs cannot go on for ever.
		d.todo[d.level]++
		count++
	}
	if count > d.spare {
		return 1, tooManyElements
	}
	d.spare -= count
	d.level++
	d.todo[d.level] = int32(e.Int)
	return 0, complete
}

// fail makes the frame malformed at an offset, until Reset.
func (d *Decoder) fail(offset int, why reason) error {
	d.failed = &ProtocolError{Offset: offset, Reason: string(why)}
	return d.failed
}
