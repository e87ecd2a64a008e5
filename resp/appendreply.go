package resp

import (
	"math"
	"strconv"
)

// The functions in this file append replies. A client has no use for them;
// servers in tests have.

// AppendSimple appends a simple string, "+s\r\n". CR and LF in s become spaces,
// as they would end the frame.
func AppendSimple(dst []byte, s string) []byte {
	return appendLine(dst, SimpleString, s)
}

// AppendError appends an error, "-s\r\n", where s begins with a code. CR and LF
// in s become spaces, as servers do it.
func AppendError(dst []byte, s string) []byte {
	return appendLine(dst, Error, s)
}

// AppendInteger appends an integer, ":n\r\n".
func AppendInteger(dst []byte, n int64) []byte {
	dst = append(dst, byte(Integer))
	dst = strconv.AppendInt(dst, n, 10)
	return append(dst, '\r', '\n')
}

// AppendNullBulk appends the null bulk of RESP2, "$-1\r\n".
func AppendNullBulk(dst []byte) []byte {
	return append(dst, "$-1\r\n"...)
}

// AppendNullArray appends the null array of RESP2, "*-1\r\n".
func AppendNullArray(dst []byte) []byte {
	return append(dst, "*-1\r\n"...)
}

// AppendNull appends the null of RESP3, "_\r\n".
func AppendNull(dst []byte) []byte {
	return append(dst, "_\r\n"...)
}

// AppendBoolean appends a boolean, "#t\r\n" or "#f\r\n".
func AppendBoolean(dst []byte, b bool) []byte {
	if b {
		return append(dst, "#t\r\n"...)
	}
	return append(dst, "#f\r\n"...)
}

// AppendDouble appends a double in the shortest form that reads back as f.
func AppendDouble(dst []byte, f float64) []byte {
	dst = append(dst, byte(Double))
	switch {
	case math.IsNaN(f):
		dst = append(dst, "nan"...)
	case math.IsInf(f, 1):
		dst = append(dst, "inf"...)
	case math.IsInf(f, -1):
		dst = append(dst, "-inf"...)
	default:
		dst = strconv.AppendFloat(dst, f, 'g', -1, 64)
	}
	return append(dst, '\r', '\n')
}

// AppendBulkError appends a bulk error, "!len\r\n...\r\n".
func AppendBulkError(dst []byte, s string) []byte {
	dst = appendHeader(dst, BulkError, len(s))
	dst = append(dst, s...)
	return append(dst, '\r', '\n')
}

// AppendVerbatim appends text as a verbatim of the format "txt",
// "=len\r\ntxt:...\r\n".
func AppendVerbatim(dst []byte, text string) []byte {
	dst = appendHeader(dst, Verbatim, len("txt:")+len(text))
	dst = append(dst, "txt:"...)
	dst = append(dst, text...)
	return append(dst, '\r', '\n')
}

// AppendMap appends the header of a map, "%n\r\n"; n keys and values follow, in
// turn. A negative n counts as 0, here and in the next three.
func AppendMap(dst []byte, n int) []byte {
	return appendHeader(dst, Map, max(n, 0))
}

// AppendSet appends the header of a set, "~n\r\n"; n elements follow.
func AppendSet(dst []byte, n int) []byte {
	return appendHeader(dst, Set, max(n, 0))
}

// AppendPush appends the header of a push, ">n\r\n"; n elements follow, the
// first of them saying what is being pushed.
func AppendPush(dst []byte, n int) []byte {
	return appendHeader(dst, Push, max(n, 0))
}

// AppendAttribute appends the header of an attribute, "|n\r\n"; n keys and
// values follow, in turn, and then the value that they are about.
func AppendAttribute(dst []byte, n int) []byte {
	return appendHeader(dst, Attribute, max(n, 0))
}

// appendLine appends a kind that is one line of text.
func appendLine(dst []byte, kind Kind, s string) []byte {
	dst = append(dst, byte(kind))
	text := len(dst)
	dst = append(dst, s...)
	for i, c := range dst[text:] {
		if c == '\r' || c == '\n' {
			dst[text+i] = ' '
		}
	}
	return append(dst, '\r', '\n')
}
