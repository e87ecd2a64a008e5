// Package resp is the Redis wire format and nothing else: bytes in, bytes out.
//
// # Encoding
//
// The Append functions add one frame, or the header of one, to a byte slice and return it, as append does. They never
// fail and allocate only to grow the slice. A command is an array of bulks:
//
//	buf = resp.AppendArray(buf[:0], 2)
//	buf = resp.AppendBulkString(buf, "GET")
//	buf = resp.AppendBulkString(buf, key)
//
// # Decoding
//
// [Decoder.Decode] reads one frame from the start of a buffer; the caller loops. The [Value] it fills in is a
// borrowed view: it and everything reached through it stay valid only until the bytes of the buffer change. Decoding
// allocates nothing, however much the peer announces; only a [*ProtocolError] is allocated.
//
// Three outcomes other than plain success are kept apart:
//
//   - incomplete: [ErrIncomplete]; more bytes are needed;
//   - malformed: [*ProtocolError]; the connection has to be closed;
//   - an error reply: Decode succeeds and [Value.IsError] is true; the connection
//     stays usable.
//
// # Strictness
//
// The peer is not trusted. Decode knows RESP2 and RESP3 and accepts a subset of the specification, as emitted by real
// nodes:
//
//   - lines end in exactly CR LF, and hold no other CR or LF;
//   - numbers are canonical decimal: no sign +, no -0, no leading zero, no
//     space, at most 19 digits, and within an int64;
//   - a negative length is -1 and belongs to a bulk or an array, the two nulls
//     of RESP2;
//   - the streamed types of RESP3 ("$?", "*?", ";", ".") are malformed, and so
//     is a push inside another frame;
//   - attributes are checked and skipped: the frame is the value they precede.
//
// [Limits] bound the line, the bulk, the elements and the depth of a frame. An
// announced length is compared with its limit before it is used in any arithmetic.
// Nesting is tracked on a fixed stack, so no input can exhaust the goroutine's.
//
// The rules are those of the RESP specification, https://redis.io/docs/latest/develop/reference/protocol-spec/, where
// this package is not stricter.
//
// # What is promised
//
// A proxy can be written with this package alone: it decodes and encodes commands and replies of every kind. A frame
// accepted today stays accepted, and no input makes Decode allocate, recurse or panic.
package resp
