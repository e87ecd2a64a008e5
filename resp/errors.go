package resp

import (
	"errors"
	"strconv"
)

// ErrIncomplete says that the buffer ends before the frame does. It is not a
// fault: read more bytes and decode again.
var ErrIncomplete = errors.New("resp: incomplete frame")

// ProtocolError says that the bytes are not RESP, or beyond the [Limits]. Where
// the next frame begins can't be known any more, so the connection they came
// from is of no further use.
type ProtocolError struct {
	// Offset is where the rule was broken, in bytes from the frame's start.
	Offset int
	// Reason is the rule.
	Reason Reason
}

// Error returns the offset and the reason. It never quotes the peer's bytes,
// so it is safe to log.
func (e *ProtocolError) Error() string {
	return "resp: malformed frame at byte " + strconv.Itoa(e.Offset) + ": " + e.Reason.String()
}

// Reason is why a frame is malformed. The zero Reason is none.
type Reason uint8

// Outcomes of reading a frame's head. The first two are no reasons at all, and
// never leave the package.
const (
	complete Reason = iota
	incomplete

	UnknownKind     // the first byte is no kind's
	StreamedType    // a RESP3 streamed type, which is not supported
	BareLineBreak   // a CR without its LF, or an LF without its CR
	LineTooLong     // no CR LF within Limits.Line, or within 20 bytes of a number
	BadNumber       // not a canonical decimal
	NumberOverflow  // a decimal outside int64
	NegativeLength  // -1 where there is no null, or below
	BulkTooLong     // an announced length above Limits.Bulk
	BadTerminator   // no CR LF after as many bytes as announced
	TooManyElements // announced elements above Limits.Elements in total
	TooDeep         // aggregates nested beyond Limits.Depth
	BadNull         // a null with a payload
	BadBoolean      // neither t nor f
	BadDouble       // not a decimal fraction, inf, -inf or nan
	BadBigNumber    // not a canonical decimal of any size
	BadVerbatim     // no three-byte format and colon
	NestedPush      // a push inside another frame
)

var reasons = [...]string{
	complete:        "none",
	incomplete:      "incomplete",
	UnknownKind:     "unknown kind",
	StreamedType:    "streamed type",
	BareLineBreak:   "bare CR or LF",
	LineTooLong:     "line too long",
	BadNumber:       "bad number",
	NumberOverflow:  "number overflow",
	NegativeLength:  "negative length",
	BulkTooLong:     "bulk too long",
	BadTerminator:   "no CRLF after payload",
	TooManyElements: "too many elements",
	TooDeep:         "nested too deep",
	BadNull:         "bad null",
	BadBoolean:      "bad boolean",
	BadDouble:       "bad double",
	BadBigNumber:    "bad big number",
	BadVerbatim:     "bad verbatim",
	NestedPush:      "push inside a frame",
}

// String returns the reason in a few constant words.
func (r Reason) String() string {
	if int(r) < len(reasons) {
		return reasons[r]
	}
	return "unknown reason"
}
