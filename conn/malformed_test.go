package conn

import (
	"fmt"
	"strings"

	"github.com/redlock-go/redlock/resp"
)

// malformed are frames that no server sends, or none that we would wait for,
// and the rule that each breaks.
var malformed = []struct {
	frame string
	why   resp.Reason
}{
	// Not RESP at all.
	{"\r\n", resp.UnknownKind},
	{"\n", resp.UnknownKind},
	{"\x00", resp.UnknownKind},
	{"\xff\xfe", resp.UnknownKind},
	{"x", resp.UnknownKind},
	{"OK\r\n", resp.UnknownKind},
	{" +OK\r\n", resp.UnknownKind},
	{"HTTP/1.1 200 OK\r\n\r\n", resp.UnknownKind},
	{"SSH-2.0-OpenSSH_9.6\r\n", resp.UnknownKind},
	{"220 mail ESMTP\r\n", resp.UnknownKind},
	{"\x16\x03\x01\x02\x00", resp.UnknownKind},
	{"\x15\x03\x03\x00\x02\x02\x28", resp.UnknownKind},
	{marked, resp.UnknownKind},

	// Lines that do not end as lines do.
	{"+OK\n", resp.BareLineBreak},
	{"+OK\rx", resp.BareLineBreak},
	{"+O\nK\r\n", resp.BareLineBreak},
	{"+O\rK\r\n", resp.BareLineBreak},
	{"+\r\r\n", resp.BareLineBreak},
	{"-ERR\n\r\n", resp.BareLineBreak},
	{":1\n", resp.BareLineBreak},
	{":1\r1", resp.BareLineBreak},
	{"$2\nOK\n", resp.BareLineBreak},
	{"*2\n:1\n:0\n", resp.BareLineBreak},
	{"_\n", resp.BareLineBreak},
	{"+" + strings.Repeat("x", 2000), resp.LineTooLong},
	{"-" + strings.Repeat(marked, 400) + "\r\n", resp.LineTooLong},
	{":" + strings.Repeat("9", 40), resp.LineTooLong},
	{"$" + strings.Repeat("0", 40), resp.LineTooLong},

	// Integers.
	{":\r\n", resp.BadNumber},
	{":-\r\n", resp.BadNumber},
	{":-0\r\n", resp.BadNumber},
	{":+1\r\n", resp.BadNumber},
	{":01\r\n", resp.BadNumber},
	{":1.0\r\n", resp.BadNumber},
	{":0x1\r\n", resp.BadNumber},
	{": 1\r\n", resp.BadNumber},
	{":1 \r\n", resp.BadNumber},
	{":1\x00\r\n", resp.BadNumber},
	{":9223372036854775808\r\n", resp.NumberOverflow},
	{":-9223372036854775809\r\n", resp.NumberOverflow},

	// Bulks that are not as long as they say.
	{"$1\r\nOK\r\n", resp.BadTerminator},
	{"$3\r\nOK\r\n" + counts, resp.BadTerminator},
	{"$2\r\nOK\n\n", resp.BadTerminator},
	{"$2\r\nOK\rx", resp.BadTerminator},
	{"$2\r\nOKx\n", resp.BadTerminator},
	{"$0\r\nOK\r\n", resp.BadTerminator},
	{"!2\r\nERR\r\n", resp.BadTerminator},
	{"=5\r\ntxt:OK\r\n", resp.BadTerminator},
	{"$5\r\n*1\r\n\r\nx", resp.BadTerminator},
	{"$-1x\r\n", resp.BadNumber},
	{"$4097\r\n", resp.BulkTooLong},
	{"$2147483648\r\n", resp.BulkTooLong},
	{"$?\r\n", resp.StreamedType},
	{";4\r\n", resp.StreamedType},
	{".\r\n", resp.StreamedType},

	// Aggregates.
	{"*?\r\n", resp.StreamedType},
	{"*1025\r\n", resp.TooManyElements},
	{"*2147483648\r\n", resp.TooManyElements},
	{"*1000000000000\r\n", resp.TooManyElements},
	{"*600\r\n*600\r\n", resp.TooManyElements},
	{"%513\r\n", resp.TooManyElements},
	{"%2147483647\r\n", resp.TooManyElements},
	{"|600\r\n", resp.TooManyElements},
	{"*1\r\n\r\n", resp.UnknownKind},
	{"*1\r\n>1\r\n+x\r\n", resp.NestedPush},
	{"%1\r\n*1\r\n>1\r\n+x\r\n", resp.NestedPush},
	{strings.Repeat("*2\r\n", 5), resp.TooDeep},
	{strings.Repeat("%1\r\n", 5), resp.TooDeep},
	{strings.Repeat("~1\r\n", 5), resp.TooDeep},
	{strings.Repeat("|1\r\n", 5), resp.TooDeep},
	{"*1\r\n%1\r\n~1\r\n*1\r\n|1\r\n", resp.TooDeep},

	// The scalars of RESP3.
	{"_x\r\n", resp.BadNull},
	{"#1\r\n", resp.BadBoolean},
	{"#\r\n", resp.BadBoolean},
	{"#true\r\n", resp.BadBoolean},
	{",\r\n", resp.BadDouble},
	{",1e\r\n", resp.BadDouble},
	{",0x1\r\n", resp.BadDouble},
	{",infinity\r\n", resp.BadDouble},
	{"(\r\n", resp.BadBigNumber},
	{"(-\r\n", resp.BadBigNumber},
	{"(1.5\r\n", resp.BadBigNumber},
	{"=2\r\nOK\r\n", resp.BadVerbatim},
	{"=6\r\ntxtxOK\r\n", resp.BadVerbatim},
}

// malformedServers answer with one of them, in place of the first reply or of
// the second, in turn.
func malformedServers() (hs []hostile) {
	for i, m := range malformed {
		behind := strings.Repeat(ok, i%2)
		name := "malformed " + behind + m.frame[:min(len(m.frame), 20)]
		hs = append(hs, hostile{name, steps{behind + m.frame}, i % 2, m.why})
	}
	return hs
}

// lengthServers announce what no frame holds, once for each kind with a length.
func lengthServers() (hs []hostile) {
	for _, bad := range []struct {
		length string
		why    resp.Reason
	}{
		{"-2", resp.NegativeLength},
		{"-5", resp.NegativeLength},
		{"-9223372036854775808", resp.NegativeLength},
		{"2147483647", 0}, // too much of what it is
		{"9223372036854775807", 0},
		{"9223372036854775808", resp.NumberOverflow},
		{"-9223372036854775809", resp.NumberOverflow},
		{"99999999999999999999", resp.NumberOverflow},
		{"", resp.BadNumber},
		{"-", resp.BadNumber},
		{"+2", resp.BadNumber},
		{"02", resp.BadNumber},
		{" 2", resp.BadNumber},
		{"2 ", resp.BadNumber},
		{"0x2", resp.BadNumber},
		{"1e3", resp.BadNumber},
		{"a", resp.BadNumber},
	} {
		for _, kind := range "$!=*%~>|" {
			why := bad.why
			if why == 0 {
				if why = resp.TooManyElements; strings.ContainsRune("$!=", kind) {
					why = resp.BulkTooLong
				}
			}
			frame := fmt.Sprintf("%c%s\r\n", kind, bad.length)
			hs = append(hs, hostile{"length " + frame, steps{frame}, 0, why})
		}
	}
	return hs
}
