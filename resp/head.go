package resp

import "bytes"

// head reads the part of a frame before any nested one: all of a scalar, the header line of an aggregate. It looks at
// nothing but its arguments and returns
//
//	complete    the length read, now described by v;
//	incomplete  how many bytes of buf the next call may pass as seen, for it
//	            not to search them again;
//	otherwise   the offset of the broken rule.
//
// Its verdict on a malformed frame is the same for every longer buf, so the pieces in which a frame arrives don't
// matter.
func head(buf []byte, seen int, lim *Limits, v *Value) (n int, why reason) {
	if len(buf) == 0 {
		return 0, incomplete
	}
	if len(buf) >= smallLen {
		if n, ok := smallInteger(buf); ok {
			v.set(Integer, n)
			return smallLen, complete
		}
	}
	switch kind := Kind(buf[0]); kind {
	case Integer, Bulk, BulkError, Verbatim, Array, Map, Set, Push, Attribute:
		count, end := shortNumber(buf)
		if end == 0 {
			count, end, why = longNumber(buf, seen)
			if why != complete {
				return end, why
			}
		}
		switch {
		case kind == Integer:
			v.set(Integer, count)
			return end + 2, complete
		case kind.aggregate():
			return aggregate(kind, count, end, v)
		}
		return bulk(buf, kind, count, end, lim, v)

	case SimpleString, Error, Double, BigNumber:
		end, why := line(buf, seen, lim.Line)
		if why != complete {
			return end, why
		}
		text := buf[1:end]
		switch {
		case kind == Double && !isDouble(text):
			return 1, badDouble
		case kind == BigNumber && !isDecimal(text):
			return 1, badBigNumber
		}
		v.setBytes(kind, text)
		return end + 2, complete

	case Null, Boolean:
		return constant(buf, kind, seen, v)

	case ';', '.': // a chunk of a streamed bulk, the end of a streamed aggregate
		return 0, streamedType
	}
	return 0, unknownKind
}

// line finds the end of the line that begins at buf[1] and may be up to most bytes long; end is the index of its CR.
// In all other cases end is the n of [head].
func line(buf []byte, seen, most int) (end int, why reason) {
	window := buf[:min(len(buf), 1+most+1)] // the CR has to be in it
	from := min(max(seen, 1), len(window))
	text := window[from:]
	cr := bytes.IndexByte(text, '\r')
	if cr >= 0 {
		text = text[:cr]
	}
	if lf := bytes.IndexByte(text, '\n'); lf >= 0 {
		return from + lf, bareLineBreak
	}
	if cr < 0 {
		if len(window) == 1+most+1 {
			return 1 + most, lineTooLong
		}
		return len(buf), incomplete
	}
	end = from + cr
	if end+1 == len(buf) {
		return end, incomplete
	}
	if buf[end+1] != '\n' {
		return end, bareLineBreak
	}
	return end, complete
}

// bulk reads the payload announced by a header ending at end.
func bulk(buf []byte, kind Kind, count int64, end int, lim *Limits, v *Value) (n int, why reason) {
	start := end + 2
	switch {
	case count == -1 && kind == Bulk:
		v.setNull(Bulk)
		return start, complete
	case count < 0:
		return 1, negativeLength
	case count > int64(lim.Bulk):
		return 1, bulkTooLong
	case count < int64(len("txt:")) && kind == Verbatim:
		return 1, badVerbatim
	}
	// From here on count fits an int, with room to spare.
	size, here := int(count), len(buf)-start
	if here > size && buf[start+size] != '\r' {
		return start + size, badTerminator
	}
	if here < size+2 {
		return 0, incomplete // the header is too short to be worth remembering
	}
	if buf[start+size+1] != '\n' {
		return start + size + 1, badTerminator
	}
	payload := buf[start : start+size]
	if kind == Verbatim {
		if payload[len("txt")] != ':' {
			return start, badVerbatim
		}
		payload = payload[len("txt:"):]
	}
	v.setBytes(kind, payload)
	return start + size + 2, complete
}

// aggregate takes the count announced by a header ending at end. The limits on elements and depth are about the whole
// frame, so the [Decoder] has them.
func aggregate(kind Kind, count int64, end int, v *Value) (n int, why reason) {
	switch {
	case count == -1 && kind == Array:
		v.setNull(Array)
		return end + 2, complete
	case count < 0:
		return 1, negativeLength
	case count > MaxElements:
		return 1, tooManyElements
	}
	if kind.paired() {
		count *= 2
	}
	v.set(kind, count)
	return end + 2, complete
}

// constant reads the kinds with few frames, all listed in the specification.
func constant(buf []byte, kind Kind, seen int, v *Value) (n int, why reason) {
	size, bad := 0, badNull
	if kind == Boolean {
		size, bad = 1, badBoolean
	}
	end, why := line(buf, seen, size)
	switch why {
	case complete:
	case lineTooLong:
		return 1, bad
	default:
		return end, why
	}
	switch text := buf[1:end]; {
	case kind == Null:
		v.setNull(Null)
	case string(text) == "t":
		v.set(Boolean, 1)
	case string(text) == "f":
		v.set(Boolean, 0)
	default:
		return 1, bad
	}
	return end + 2, complete
}
