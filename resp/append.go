package resp

import "strconv"

// AppendArray appends the header of an array of n elements. A negative n gives the null array, "*-1\r\n".
func AppendArray(dst []byte, n int) []byte {
	return AppendHeader(dst, Array, max(n, -1))
}

// AppendCommand appends a command: an array of bulks. For words of bytes use [AppendArray] and [AppendBulk].
func AppendCommand(dst []byte, words ...string) []byte {
	dst = AppendArray(dst, len(words))
	for _, word := range words {
		dst = AppendBulkString(dst, word)
	}
	return dst
}

// AppendBulk appends b as a bulk, "$len\r\n...\r\n". A nil b is an empty bulk.
func AppendBulk(dst, b []byte) []byte {
	dst = AppendHeader(dst, Bulk, len(b))
	dst = append(dst, b...)
	return append(dst, '\r', '\n')
}

// AppendBulkString is [AppendBulk] for a string.
func AppendBulkString(dst []byte, s string) []byte { return AppendPayload(dst, Bulk, s) }

// AppendPayload appends a frame of a length-prefixed kind: a [Bulk], [BulkError] or [Verbatim]. Bytes of any value are fine.
func AppendPayload(dst []byte, kind Kind, s string) []byte {
	dst = AppendHeader(dst, kind, len(s))
	dst = append(dst, s...)
	return append(dst, '\r', '\n')
}

// AppendLine appends a frame of one line: a [SimpleString], [Error], [Double] or [BigNumber], a [Boolean] with "t" or
// "f", or a [Null] with "". CR and LF in s become spaces.
func AppendLine(dst []byte, kind Kind, s string) []byte {
	dst = append(dst, byte(kind))
	from := len(dst)
	dst = append(dst, s...)
	for i, c := range dst[from:] {
		if c == '\r' || c == '\n' {
			dst[from+i] = ' '
		}
	}
	return append(dst, '\r', '\n')
}

// AppendInt appends an [Integer].
func AppendInt(dst []byte, n int64) []byte {
	dst = strconv.AppendInt(append(dst, byte(Integer)), n, 10)
	return append(dst, '\r', '\n')
}

// AppendHeader appends the header of a frame of n parts. The caller appends these: the elements of an [Array], [Set]
// or [Push], the pairs of a [Map] or [Attribute].
func AppendHeader(dst []byte, kind Kind, n int) []byte {
	if n >= 0 && n < 10 { // nearly every number in a command
		return append(dst, byte(kind), byte('0'+n), '\r', '\n')
	}
	dst = append(dst, byte(kind))
	dst = strconv.AppendInt(dst, int64(n), 10)
	return append(dst, '\r', '\n')
}
