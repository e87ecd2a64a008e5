package resp

// Value is a borrowed view of one decoded frame. It points into the buffer it was decoded from and is valid until those
// bytes change; copy what has to outlive them. The zero Value is of no kind.
type Value struct {
	// Kind is the frame's first byte. Attributes before a frame are no part of its Value, so it is never Attribute.
	Kind Kind
	// Null is true for the null of RESP3 and for the null bulk and null array
	// of RESP2. The Kind of these stays Bulk and Array.
	Null bool
	// Int is the number of an integer, 0 or 1 for a boolean, the number of direct elements of an aggregate, with 2 for
	// each pair of a map, and 0 otherwise.
	Int int64
	// Bytes is the payload of a simple string, error, bulk, bulk error or verbatim, the latter without its format, and
	// the text of a double or big number. It is nil for all other kinds and for nulls, and not nil for an empty payload.
	// It has no spare capacity: appending to it copies.
	Bytes []byte

	body []byte // of an aggregate: its elements, encoded and checked
}

// IsOK reports whether v is the simple string OK.
func (v *Value) IsOK() bool { return v.Kind == SimpleString && string(v.Bytes) == "OK" }

// IsError reports whether v is an error reply, of either kind.
func (v *Value) IsError() bool { return v.Kind == Error || v.Kind == BulkError }

// Elements returns an iterator over the direct elements of an aggregate, which
// is at its end at once for a null and for other kinds. It allocates nothing.
func (v *Value) Elements() Elements { return Elements{body: v.body} }

// set makes v a value without a payload. It assigns field by field because a
// struct literal would be built elsewhere and copied.
func (v *Value) set(kind Kind, n int64) {
	v.Kind = kind
	v.Null = false
	v.Int = n
	v.Bytes = nil
	v.body = nil
}

// setNull makes v the null of a kind.
func (v *Value) setNull(kind Kind) {
	v.set(kind, 0)
	v.Null = true
}

// setBytes makes v a value with a payload, of which it is given no more.
func (v *Value) setBytes(kind Kind, payload []byte) {
	v.set(kind, 0)
	v.Bytes = payload[:len(payload):len(payload)]
}
