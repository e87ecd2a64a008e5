package engine

import "strconv"

// The replies of the simulated masters.

func appendSimple(dst []byte, s string) []byte {
	return append(append(append(dst, '+'), s...), "\r\n"...)
}

func appendError(dst []byte, s string) []byte {
	return append(append(append(dst, '-'), s...), "\r\n"...)
}

func appendInteger(dst []byte, n int64) []byte {
	return append(strconv.AppendInt(append(dst, ':'), n, 10), "\r\n"...)
}

func appendNull(dst []byte) []byte { return append(dst, "$-1\r\n"...) }
