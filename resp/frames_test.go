package resp

import (
	"strconv"
	"strings"
)

// goodFrames are well-formed within the default limits.
var goodFrames = []string{
	"+OK\r\n", "+\r\n", "+\x00\x1b[2J\xff\r\n", "+" + strings.Repeat("x", 1024) + "\r\n", "-ERR no\r\n", "-\r\n",
	":0\r\n", ":1\r\n", ":-1\r\n", ":999999999999999999\r\n", ":1000000000000000000\r\n", ":9223372036854775807\r\n",
	":-9223372036854775808\r\n", "$5\r\nhello\r\n", "$0\r\n\r\n", "$4\r\n\r\n\r\n\r\n",
	"$65536\r\n" + strings.Repeat("x", 65536) + "\r\n", "$-1\r\n", "*-1\r\n", "_\r\n", "#t\r\n", "#f\r\n", ",3.25\r\n",
	",10.\r\n", ",-1.5e+300\r\n", ",-0\r\n", ",-inf\r\n", ",nan\r\n", "(-3492890328409238509324850943850943825024385\r\n",
	"(0\r\n", "!10\r\nSYNTAX no\n\r\n", "=7\r\ntxt:abc\r\n", "=4\r\nmkd:\r\n", "*0\r\n", "*3\r\n:1\r\n:12\r\n:-3\r\n",
	"*3\r\n$-1\r\n*-1\r\n_\r\n", "*4\r\n*0\r\n$0\r\n\r\n+\r\n%0\r\n", "*3\r\n*2\r\n:1\r\n*1\r\n$1\r\na\r\n*0\r\n:7\r\n",
	"*1\r\n-ERR no\r\n", strings.Repeat("*1\r\n", 8) + ":1\r\n", "%2\r\n+a\r\n:1\r\n+b\r\n:2\r\n",
	"%1\r\n*1\r\n:1\r\n*0\r\n", "~2\r\n:1\r\n#t\r\n", ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n", ">0\r\n",
	"|1\r\n+ttl\r\n:3600\r\n:5\r\n", "|1\r\n+a\r\n%1\r\n:1\r\n:2\r\n*1\r\n:4\r\n", "|0\r\n*-1\r\n", "|0\r\n>1\r\n:1\r\n",
	"|0\r\n|1\r\n:1\r\n:2\r\n+OK\r\n", "*2\r\n|1\r\n:1\r\n:2\r\n:3\r\n|0\r\n*1\r\n|0\r\n:4\r\n",
	"|1\r\n|1\r\n:1\r\n:2\r\n+k\r\n+v\r\n:5\r\n",
}

// A badFrame is malformed under the default limits: at the offset, for the reason.
// Bytes after it do not change that.
type badFrame struct {
	name, frame string
	offset      int
	reason      reason
}

var badFrames = append(badLengths(), []badFrame{
	// First bytes.
	{"zero byte", "\x00", 0, unknownKind},
	{"http banner", "HTTP/1.1 400 Bad Request\r\n", 0, unknownKind},
	{"tls alert", "\x15\x03\x01\x00\x02\x02\x46", 0, unknownKind},
	{"unknown kind inside", "*2\r\n:1\r\nx", 8, unknownKind},

	// Streamed types.
	{"streamed bulk", "$?\r\n", 1, streamedType},
	{"chunk", ";4\r\nabcd\r\n", 0, streamedType},
	{"end of stream", ".\r\n", 0, streamedType},
	{"end of stream inside", "*1\r\n.\r\n", 4, streamedType},

	// Line ends.
	{"simple with LF only", "+OK\n", 3, bareLineBreak},
	{"simple with CR only", "+OK\r+", 3, bareLineBreak},
	{"simple with LF inside", "+O\nK\r\n", 2, bareLineBreak},
	{"simple with CR inside", "+O\rK\r\n", 2, bareLineBreak},
	{"integer with LF only", ":1\n", 2, bareLineBreak},
	{"bulk header with LF only", "$1\na\r\n", 2, bareLineBreak},
	{"null with LF only", "_\n", 1, bareLineBreak},
	{"element with LF only", "*2\r\n:1\r\n:1\n", 10, bareLineBreak},
	{"element without line end", "*2\r\n:1\r\n:1:1\r\n", 9, badNumber},

	// Line lengths.
	{"simple beyond the limit", "+" + strings.Repeat("x", 1025), 1025, lineTooLong},
	{"simple far beyond the limit", "+" + strings.Repeat("x", 9999) + "\r\n", 1025, lineTooLong},
	{"double beyond the limit", "," + strings.Repeat("1", 1025), 1025, lineTooLong},
	{"big number beyond the limit", "(" + strings.Repeat("1", 1025), 1025, lineTooLong},
	{"limit before LF", "+" + strings.Repeat("x", 1025) + "\n", 1025, lineTooLong},

	// Constants and texts.
	{"null with payload", "_1\r\n", 1, badNull},
	{"boolean empty", "#\r\n", 1, badBoolean},
	{"boolean upper case", "#T\r\n", 1, badBoolean},
	{"double empty", ",\r\n", 1, badDouble},
	{"double with sign +", ",+1.5\r\n", 1, badDouble},
	{"double with two dots", ",1.2.3\r\n", 1, badDouble},
	{"double without integral", ",.5\r\n", 1, badDouble},
	{"double without exponent", ",1e\r\n", 1, badDouble},
	{"double with text behind", ",1e5x\r\n", 1, badDouble},
	{"double sign only", ",-\r\n", 1, badDouble},
	{"big number empty", "(\r\n", 1, badBigNumber},
	{"big number with sign +", "(+1\r\n", 1, badBigNumber},
	{"big number -0", "(-0\r\n", 1, badBigNumber},
	{"big number with leading zero", "(01\r\n", 1, badBigNumber},

	// Payloads.
	{"bulk longer by one", "$4\r\nhello\r\n", 8, badTerminator},
	{"bulk shorter by one", "$6\r\nhello\r\n", 10, badTerminator},
	{"bulk with LF only", "$5\r\nhello\n", 9, badTerminator},
	{"bulk with CR only", "$5\r\nhello\r+", 10, badTerminator},
	{"bulk empty without end", "$0\r\n+OK\r\n", 4, badTerminator},
	{"bulk error longer by one", "!2\r\nERR\r\n", 6, badTerminator},
	{"verbatim longer by one", "=4\r\ntxt:a\r\n", 8, badTerminator},
	{"verbatim without colon", "=4\r\ntext\r\n", 4, badVerbatim},
	{"verbatim too short", "=3\r\ntxt\r\n", 1, badVerbatim},
	{"bulk beyond the limit", "$65537\r\n", 1, bulkTooLong},
	{"verbatim beyond the limit", "=65537\r\n", 1, bulkTooLong},
	{"bulk beyond the limit inside", "*1\r\n$65537\r\n", 5, bulkTooLong},

	// Elements and depth.
	{"array beyond the limit", "*4097\r\n", 1, tooManyElements},
	{"array of 2^31", "*2147483648\r\n", 1, tooManyElements},
	{"map beyond the limit", "%2049\r\n", 1, tooManyElements},
	{"map that overflows 32 bits doubled", "%2147483649\r\n", 1, tooManyElements},
	{"map that overflows 64 bits doubled", "%9223372036854775807\r\n", 1, tooManyElements},
	{"attribute beyond the limit", "|2048\r\n", 1, tooManyElements},
	{"elements beyond the limit in total", "*2\r\n*4000\r\n" + strings.Repeat(":1\r\n", 4000) + "*95\r\n", 16012, tooManyElements},
	{"attribute bomb", strings.Repeat("|0\r\n", 5000), 4096*4 + 1, tooManyElements},
	{"attribute bomb inside", "*1\r\n" + strings.Repeat("|1\r\n:1\r\n:2\r\n", 5000), 4 + 1365*12 + 1, tooManyElements},
	{"attributes in attributes", strings.Repeat("|1\r\n", 9), 32, tooDeep},
	{"arrays 9 deep", strings.Repeat("*1\r\n", 9), 32, tooDeep},
	{"empty array 9 deep", strings.Repeat("*1\r\n", 8) + "*0\r\n", 32, tooDeep},
	{"arrays 100000 deep", strings.Repeat("*1\r\n", 100_000), 32, tooDeep},
	{"all kinds deep", "*1\r\n~1\r\n%1\r\n|1\r\n*1\r\n~1\r\n%1\r\n|1\r\n*1\r\n", 32, tooDeep},
	{"push inside", "*1\r\n>1\r\n:1\r\n", 4, nestedPush},
	{"push inside attribute", "|1\r\n>0\r\n", 4, nestedPush},
}...)

// badLengths crosses every kind that has a number with every wrong number.
func badLengths() []badFrame {
	var frames []badFrame
	for _, kind := range []Kind{
		Integer, Bulk, BulkError, Verbatim,
		Array, Map, Set, Push, Attribute,
	} {
		add := func(number string, offset int, reason reason) {
			name := kind.String() + " " + strconv.Quote(number)
			frames = append(frames, badFrame{name, string(rune(kind)) + number + "\r\n", offset, reason})
		}
		for _, number := range []string{
			"", "-", "+", "+1", "-0", "00", "01", "-01", "0x1", "1f", "abc", " 1", "1 ", "1 2", "\t1",
			"1\x00", "--1", "1-", "1.0", "1e3", "1_0", "1,0", "-a", "??", "\xd9\xa1",
		} {
			add(number, 1, badNumber)
		}
		for _, number := range []string{
			"9223372036854775808", "-9223372036854775809", "9999999999999999999", "10000000000000000000", "18446744073709551617",
		} {
			add(number, 1, numberOverflow)
		}
		add("100000000000000000000", 21, lineTooLong)
		add("?", 1, streamedType)
		if kind == Integer {
			continue
		}
		for _, number := range []string{"-2", "-10", "-2147483648", "-9223372036854775808"} {
			add(number, 1, negativeLength)
		}
		if kind != Bulk && kind != Array {
			add("-1", 1, negativeLength)
		}
		tooBig := bulkTooLong
		if isAggregate(kind) {
			tooBig = tooManyElements
		}
		for _, number := range []string{"1048577", "536870913", "2147483647", "4294967295", "4294967296", "999999999999999999", "9223372036854775807"} {
			add(number, 1, tooBig)
		}
	}
	return frames
}

func isAggregate(kind Kind) bool {
	return strings.ContainsRune("*%~>|", rune(kind))
}
