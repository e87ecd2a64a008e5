package resp

import "strconv"

// AppendArray appends the header of an array of n elements, "*n\r\n"; the caller
// appends the elements. A negative n gives the null array, "*-1\r\n".
func AppendArray(dst []byte, n int) []byte {
	return appendHeader(dst, Array, max(n, -1))
}

// AppendBulk appends b as a bulk, "$len\r\n...\r\n". Bytes of any value are
// fine. A nil b is an empty bulk.
func AppendBulk(dst, b []byte) []byte {
	dst = appendHeader(dst, Bulk, len(b))
	dst = append(dst, b...)
	return append(dst, '\r', '\n')
}

// AppendBulkString is [AppendBulk] for a string.
func AppendBulkString(dst []byte, s string) []byte {
	dst = appendHeader(dst, Bulk, len(s))
	dst = append(dst, s...)
	return append(dst, '\r', '\n')
}

// appendHeader appends a kind, a number and CR LF. Commands are small, so that
// nearly every number in them has a single digit.
func appendHeader(dst []byte, kind Kind, n int) []byte {
	if n >= 0 && n < 10 {
		return append(dst, byte(kind), byte('0'+n), '\r', '\n')
	}
	dst = append(dst, byte(kind))
	dst = strconv.AppendInt(dst, int64(n), 10)
	return append(dst, '\r', '\n')
}
