package session

import "github.com/redlock-go/redlock/resp"

// Reply is the reply to one command, in the protocol of its connection. Each command writes exactly
// one value, or several of Push; an Array is followed by its elements.
type Reply struct {
	buf   []byte
	resp3 bool
}

// SetRESP3 chooses the protocol of this reply.
func (r *Reply) SetRESP3(on bool) { r.resp3 = on }

// OK writes the status of success. It, Simple, Int and Bulk are alike in both protocols.
func (r *Reply) OK()             { r.Simple("OK") }
func (r *Reply) Simple(s string) { r.buf = resp.AppendLine(r.buf, resp.SimpleString, s) }
func (r *Reply) Int(n int64)     { r.buf = resp.AppendInt(r.buf, n) }
func (r *Reply) Bulk(s string)   { r.buf = resp.AppendBulkString(r.buf, s) }

// Bool writes 1 or 0.
func (r *Reply) Bool(is bool) {
	if is {
		r.Int(1)
	} else {
		r.Int(0)
	}
}

// Nil writes the null of a bulk, NilArray that of an array. RESP3 has one null for both.
func (r *Reply) Nil()      { r.null("$-1\r\n") }
func (r *Reply) NilArray() { r.null("*-1\r\n") }

func (r *Reply) null(resp2 string) {
	if r.resp3 {
		resp2 = "_\r\n"
	}
	r.buf = append(r.buf, resp2...)
}

// Array begins an array of n elements, written by the caller.
func (r *Reply) Array(n int) { r.buf = resp.AppendArray(r.buf, n) }

// Map writes names and their values in turn, Push a message. In RESP2 both are arrays. An item is a
// string, an integer, nil or an empty list.
func (r *Reply) Map(items ...any)  { r.list(resp.Map, len(items)/2, items) }
func (r *Reply) Push(items ...any) { r.list(resp.Push, len(items), items) }

// List writes an array of items.
func (r *Reply) List(items ...any) { r.list(resp.Array, len(items), items) }

func (r *Reply) list(kind resp.Kind, n int, items []any) {
	if !r.resp3 {
		kind, n = resp.Array, len(items)
	}
	r.buf = resp.AppendHeader(r.buf, kind, n)
	for _, item := range items {
		switch item := item.(type) {
		case string:
			r.Bulk(item)
		case int64:
			r.Int(item)
		case nil:
			r.Nil()
		default:
			r.Array(0)
		}
	}
}

// Error writes an error: a code in capitals, a space and a text. Line breaks become spaces.
func (r *Reply) Error(text string) { r.buf = resp.AppendLine(r.buf, resp.Error, text) }

// Reset empties the reply.
func (r *Reply) Reset() { r.buf = r.buf[:0] }

// Len is the number of bytes so far.
func (r *Reply) Len() int { return len(r.buf) }
