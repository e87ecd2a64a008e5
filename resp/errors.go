package resp

import (
	"errors"
	"strconv"
)

// ErrIncomplete means that the buffer ends before the frame does. It is not a
// fault: read more bytes and decode again.
var ErrIncomplete = errors.New("resp: incomplete frame")

// ProtocolError means: the bytes are not RESP, or exceed the [Limits]. The start of the next frame is unknown from
// then on, so the connection must be closed.
type ProtocolError struct {
	// Offset is where the rule was broken, in bytes from the frame's start.
	Offset int
	// Reason is the rule, in a few constant words.
	Reason string
}

// Error returns the offset and the reason. It never quotes the peer's bytes,
// so it is safe to log.
func (e *ProtocolError) Error() string {
	return "resp: malformed frame at byte " + strconv.Itoa(e.Offset) + ": " + e.Reason
}

// reason is the outcome of reading a frame's head: complete, incomplete, or why the
// frame is malformed.
type reason uint8

const (
	complete reason = iota
	incomplete

	unknownKind     // the first byte is no kind's
	streamedType    // a RESP3 streamed type, unsupported
	bareLineBreak   // a CR without its LF, or an LF without its CR
	lineTooLong     // no CR LF within Limits.Line, or within 20 bytes of a number
	badNumber       // not a canonical decimal
	numberOverflow  // a decimal outside int64
	negativeLength  // -1 where there is no null, or below
	bulkTooLong     // an announced length above Limits.Bulk
	badTerminator   // no CR LF after as many bytes as announced
	tooManyElements // announced elements above Limits.Elements in total
	tooDeep         // aggregates nested beyond Limits.Depth
	badNull         // a null with a payload
	badBoolean      // neither t nor f
	badDouble       // not a decimal fraction, inf, -inf or nan
	badBigNumber    // not a canonical decimal of any size
	badVerbatim     // no three-byte format and colon
	nestedPush      // a push inside another frame
)

var reasons = [...]string{
	complete:        "none",
	incomplete:      "incomplete",
	unknownKind:     "unknown kind",
	streamedType:    "streamed type",
	bareLineBreak:   "bare CR or LF",
	lineTooLong:     "line too long",
	badNumber:       "bad number",
	numberOverflow:  "number overflow",
	negativeLength:  "negative length",
	bulkTooLong:     "bulk too long",
	badTerminator:   "no CRLF after payload",
	tooManyElements: "too many elements",
	tooDeep:         "nested too deep",
	badNull:         "bad null",
	badBoolean:      "bad boolean",
	badDouble:       "bad double",
	badBigNumber:    "bad big number",
	badVerbatim:     "bad verbatim",
	nestedPush:      "push inside a frame",
}

func (r reason) String() string { return reasons[r] }
