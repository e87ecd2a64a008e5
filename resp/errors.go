package resp

import (
	"errors"
	"strconv"
)

// ErrIncomplete means that the buffer ends before the frame does. It is not a fault: read more bytes and decode again.
var ErrIncomplete = errors.New("resp: incomplete frame")

// ProtocolError means: the bytes are not RESP, or exceed the [Limits]. The start of the next frame is unknown from
// then on, so the connection must be closed.
type ProtocolError struct {
	// Offset is where the rule was broken, in bytes from the frame's start.
	Offset int
	// Reason is the rule, in a few constant words.
	Reason string
}

// IsLimit reports whether the frame exceeds the [Limits]: it may be one for a reader with others.
func (e *ProtocolError) IsLimit() bool {
	switch reason(e.Reason) {
	case lineTooLong, bulkTooLong, tooManyElements, tooDeep:
		return true
	}
	return false
}

// Error returns the offset and the reason. It never quotes the peer's bytes.
func (e *ProtocolError) Error() string {
	return "resp: malformed frame at byte " + strconv.Itoa(e.Offset) + ": " + e.Reason
}

// reason is the outcome of reading a frame's head: complete, incomplete, or why the frame is malformed.
type reason string

const (
	complete   reason = ""
	incomplete reason = "incomplete"

	unknownKind     reason = "unknown kind"          // the first byte is no kind's
	streamedType    reason = "streamed type"         // of RESP3, unsupported
	bareLineBreak   reason = "bare CR or LF"         // a CR without its LF, or an LF without its CR
	lineTooLong     reason = "line too long"         // no CR LF within Limits.Line, or within 20 bytes of a number
	badNumber       reason = "bad number"            // not a canonical decimal
	numberOverflow  reason = "number overflow"       // a decimal outside int64
	negativeLength  reason = "negative length"       // -1 where there is no null, or below
	bulkTooLong     reason = "bulk too long"         // an announced length above Limits.Bulk
	badTerminator   reason = "no CRLF after payload" // no CR LF after as many bytes as announced
	tooManyElements reason = "too many elements"     // announced elements above Limits.Elements in total
	tooDeep         reason = "nested too deep"       // aggregates nested beyond Limits.Depth
	badNull         reason = "bad null"              // a null with a payload
	badBoolean      reason = "bad boolean"           // neither t nor f
	badDouble       reason = "bad double"            // not a decimal fraction, inf, -inf or nan
	badBigNumber    reason = "bad big number"        // not a canonical decimal of any size
	badVerbatim     reason = "bad verbatim"          // no three-byte format and colon
	nestedPush      reason = "push inside a frame"
)
