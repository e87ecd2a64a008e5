package resp

// Elements iterates over the direct elements of an aggregate, in order; of a map these are key, value, key, value and so
// on. [Value.Elements] returns one:
//
//	it := v.Elements()
//	for it.Next() {
//		e := it.Value()
//		...
//	}
//
// Declare it before the loop, as here: a variable of the for clause would be
// copied in every turn, which takes longer than Next itself.
//
// It is valid as long as the Value it came from, and allocates nothing. Should the bytes change all the same, it may
// end early but doesn't panic. To pass over an element costs time linear in its size, nested elements included.
type Elements struct {
	body  []byte // of the aggregate
	next  int    // offset of the next element; an integer spares a write barrier
	value Value  // the current element
}

// Value returns the current element, the iterator's own, which Next overwrites: don't change it. Before the first Next
// and after the last it is the zero Value.
func (it *Elements) Value() *Value { return &it.value }

// Next moves to the next element, and reports whether there is one.
func (it *Elements) Next() bool {
	rest := it.body[it.next:]
	for {
		n, why := head(rest, 0, &hardLimits, &it.value)
		if why != complete {
			break // at the end, or the bytes have changed since
		}
		rest = rest[n:]
		if it.value.Kind.aggregate() {
			size, ok := skip(rest, int(it.value.Int))
			if !ok {
				break
			}
			body := rest[:size:size]
			rest = rest[size:]
			if it.value.Kind == Attribute {
				continue // on to the value it is about
			}
			it.value.body = body
		}
		it.next = len(it.body) - len(rest)
		return true
	}
	*it = Elements{}
	return false
}

// skip returns the length of the next frames in buf, with everything nested in them. It needs no stack, as an
// aggregate merely puts more frames ahead.
func skip(buf []byte, frames int) (n int, ok bool) {
	var v Value
	for frames > 0 {
		size, why := head(buf[n:], 0, &hardLimits, &v)
		if why != complete {
			return 0, false
		}
		n += size
		if v.Kind.aggregate() {
			frames += int(v.Int)
		}
		if v.Kind != Attribute { // an attribute stands beside a frame, not for one
			frames--
		}
	}
	return n, true
}
