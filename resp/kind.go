package resp

import "strconv"

// Kind is the first byte of a frame; it determines how the rest is read. The zero Kind belongs to no frame.
type Kind byte

// The kinds of RESP2.
const (
	SimpleString Kind = '+' // a line of text
	Error        Kind = '-' // an error reply, a line of text
	Integer      Kind = ':' // a signed 64-bit integer
	Bulk         Kind = '$' // length-prefixed bytes, or null
	Array        Kind = '*' // a sequence of frames, or null
)

// The kinds of RESP3.
const (
	Null      Kind = '_' // no value
	Boolean   Kind = '#' // true or false
	Double    Kind = ',' // a floating-point number, as text
	BigNumber Kind = '(' // an integer of any size, as text
	BulkError Kind = '!' // an error reply, length-prefixed
	Verbatim  Kind = '=' // length-prefixed text with a three-byte format
	Map       Kind = '%' // a sequence of key-value pairs
	Set       Kind = '~' // a sequence of distinct frames
	Push      Kind = '>' // out-of-band data, answering no command
	Attribute Kind = '|' // pairs about the following value; never a value itself
)

var kinds = map[Kind]string{
	SimpleString: "simple string", Error: "error", Integer: "integer", Bulk: "bulk", Array: "array",
	Null: "null", Boolean: "boolean", Double: "double", BigNumber: "big number", BulkError: "bulk error",
	Verbatim: "verbatim", Map: "map", Set: "set", Push: "push", Attribute: "attribute",
}

// String returns the kind's name in the words of the RESP specification. It allocates only for a byte of no kind.
func (k Kind) String() string {
	if name, ok := kinds[k]; ok {
		return name
	}
	return "unknown kind 0x" + strconv.FormatUint(uint64(k), 16)
}

// aggregate reports whether frames of this kind are made of other frames.
func (k Kind) aggregate() bool {
	return k == Array || k == Map || k == Set || k == Push || k == Attribute
}

// paired reports whether an aggregate announces pairs instead of elements.
func (k Kind) paired() bool { return k == Map || k == Attribute }
