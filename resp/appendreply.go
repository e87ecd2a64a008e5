package resp

import "strconv"

// The functions in this file append replies. A client has no use for them; servers
// in tests have, and proxies.

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
