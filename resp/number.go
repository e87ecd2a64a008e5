package resp

import (
	"bytes"
	"encoding/binary"
	"math"
)

const (
	maxDigits = 19            // of an int64
	maxNumber = maxDigits + 1 // with its sign
	smallLen  = len(":0\r\n") // of an integer with one digit
)

// smallInteger reads the frame of an integer from 0 to 9 off the start of buf, of at least smallLen bytes. These are
// the elements of scripts' replies, so they are worth a test of four bytes at once.
func smallInteger(buf []byte) (n int64, ok bool) {
	const (
		frame = uint32(Integer) | '\r'<<16 | '\n'<<24
		digit = 0xff << 8
	)
	word := binary.LittleEndian.Uint32(buf)
	n = int64(word>>8&0xff) - '0'
	return n, word&^digit == frame && uint64(n) <= 9
}

// shortNumber reads a non-negative number of up to 18 digits and its CR LF off buf[1:]: nearly every header has such
// a one. end is the index of the CR. Anything else, right or wrong, is end == 0.
func shortNumber(buf []byte) (n int64, end int) {
	i := 1
	for ; i < len(buf) && i < maxDigits; i++ {
		digit := buf[i] - '0'
		if digit > 9 {
			break
		}
		n = n*10 + int64(digit)
	}
	if i == 1 || len(buf) < i+2 || buf[i] != '\r' || buf[i+1] != '\n' {
		return 0, 0
	}
	if buf[1] == '0' && i > 2 {
		return 0, 0
	}
	return n, i
}

// longNumber reads any number and its CR LF off buf[1:], a canonical decimal int64; end is the index of the CR. If it is
// not complete, end is the n of [head].
func longNumber(buf []byte, seen int) (n int64, end int, why reason) {
	end, why = line(buf, seen, maxNumber)
	if why != complete {
		return 0, end, why
	}
	text := buf[1:end]
	switch {
	case string(text) == "?":
		return 0, 1, streamedType
	case !isDecimal(text):
		return 0, 1, badNumber
	}
	digits := bytes.TrimPrefix(text, []byte("-"))
	var u uint64 // holds 19 digits, which an int64 may not
	for _, c := range digits {
		u = u*10 + uint64(c-'0')
	}
	most := uint64(math.MaxInt64)
	if len(digits) < len(text) {
		most = -math.MinInt64
	}
	switch {
	case len(digits) > maxDigits, u > most:
		return 0, 1, numberOverflow
	case len(digits) < len(text):
		return -int64(u), end, complete // exact for the least int64, too: it wraps twice
	}
	return int64(u), end, complete
}

// isDecimal reports whether text is an integer in the one form emitted by servers: no sign +, no leading zero, no -0.
func isDecimal(text []byte) bool {
	digits := bytes.TrimPrefix(text, []byte("-"))
	if len(digits) == 0 || countDigits(digits) < len(digits) {
		return false
	}
	return digits[0] != '0' || len(text) == 1
}

// isDouble reports whether text is a double: [-]digits[.[digits]][e[+|-]digits], inf, -inf or nan.
func isDouble(text []byte) bool {
	switch string(text) {
	case "inf", "-inf", "nan":
		return true
	}
	text = bytes.TrimPrefix(text, []byte("-"))
	n := countDigits(text)
	if n == 0 {
		return false
	}
	text = text[n:]
	if len(text) > 0 && text[0] == '.' {
		text = text[1:]
		text = text[countDigits(text):]
	}
	if len(text) == 0 {
		return true
	}
	if text[0] != 'e' && text[0] != 'E' {
		return false
	}
	text = text[1:]
	if len(text) > 0 && (text[0] == '+' || text[0] == '-') {
		text = text[1:]
	}
	return len(text) > 0 && countDigits(text) == len(text)
}

// countDigits returns how many digits text begins with.
func countDigits(text []byte) int {
	for i, c := range text {
		if c-'0' > 9 {
			return i
		}
	}
	return len(text)
}
