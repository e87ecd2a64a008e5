package conn

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/redlock-go/redlock/resp"
)

// misfitServers send well-formed answers to something else.
var misfitServers = []hostile{
	{"integer for OK", steps{":1\r\n"}, 1, errMisfit},
	{"zero for OK", steps{":0\r\n"}, 1, errMisfit},
	{"bulk for OK", steps{"$2\r\nOK\r\n"}, 1, errMisfit},
	{"empty bulk for OK", steps{"$0\r\n\r\n"}, 1, errMisfit},
	{"verbatim for OK", steps{"=6\r\ntxt:OK\r\n"}, 1, errMisfit},
	{"true for OK", steps{"#t\r\n"}, 1, errMisfit},
	{"double for OK", steps{",1\r\n"}, 1, errMisfit},
	{"big number for OK", steps{"(1\r\n"}, 1, errMisfit},
	{"lower case", steps{"+ok\r\n"}, 1, errMisfit},
	{"longer than OK", steps{"+OK \r\n"}, 1, errMisfit},
	{"OK and NUL", steps{"+OK\x00\r\n"}, 1, errMisfit},
	{"empty for OK", steps{"+\r\n"}, 1, errMisfit},
	{"QUEUED", steps{"+QUEUED\r\n"}, 1, errMisfit},
	{"PONG", steps{"+PONG\r\n"}, 1, errMisfit},
	{"OK in an array", steps{"*1\r\n+OK\r\n"}, 1, errMisfit},
	{"empty array for OK", steps{"*0\r\n"}, 1, errMisfit},
	{"integer behind an attribute for OK", steps{"|1\r\n+a\r\n+b\r\n:1\r\n"}, 1, errMisfit},

	{"OK for integers", steps{ok + ok}, 2, errMisfit},
	{"null bulk for integers", steps{ok + "$-1\r\n"}, 2, errMisfit},
	{"null array for integers", steps{ok + "*-1\r\n"}, 2, errMisfit},
	{"null for integers", steps{ok + "_\r\n"}, 2, errMisfit},
	{"one integer for two", steps{ok + ":1\r\n"}, 2, errMisfit},
	{"an array of none", steps{ok + "*0\r\n"}, 2, errMisfit},
	{"an array of one", steps{ok + "*1\r\n:1\r\n"}, 2, errMisfit},
	{"an array of three", steps{ok + "*3\r\n:1\r\n:1\r\n:0\r\n"}, 2, errMisfit},
	{"an array of three, of which two come", steps{ok + "*3\r\n:1\r\n:1\r\n"}, 1, ErrStalled},
	{"an array of one, and one integer more", steps{ok + "*1\r\n:1\r\n:0\r\n"}, 2, errMisfit},
	{"an array of two, and one integer more", steps{ok + counts + ":0\r\n"}, 2, ErrUnsolicited},
	{"null for an integer", steps{ok + "*2\r\n:1\r\n$-1\r\n"}, 2, errMisfit},
	{"RESP3 null for an integer", steps{ok + "*2\r\n_\r\n:1\r\n"}, 2, errMisfit},
	{"boolean for an integer", steps{ok + "*2\r\n#t\r\n#f\r\n"}, 2, errMisfit},
	{"bulk for an integer", steps{ok + "*2\r\n$1\r\n1\r\n$1\r\n0\r\n"}, 2, errMisfit},
	{"error for an integer", steps{ok + "*2\r\n:1\r\n-ERR no\r\n"}, 2, errMisfit},
	{"array for an integer", steps{ok + "*2\r\n*1\r\n:1\r\n:1\r\n"}, 2, errMisfit},
	{"integers of another command", steps{ok + "*2\r\n:2\r\n:-1\r\n"}, 2, errMisfit},
	{"the largest integers", steps{ok + "*2\r\n:9223372036854775807\r\n:-9223372036854775808\r\n"}, 2, errMisfit},
	{"a set for an array", steps{ok + "~2\r\n:1\r\n:0\r\n"}, 2, errMisfit},
	{"a map for an array", steps{ok + "%1\r\n:1\r\n:0\r\n"}, 2, errMisfit},
	{"a map of arrays by arrays", steps{ok + "%1\r\n*1\r\n:1\r\n*1\r\n:0\r\n"}, 2, errMisfit},
	{"a map with half a pair", steps{ok + "%2\r\n:1\r\n:0\r\n:1\r\n"}, 1, ErrStalled},

	{"swapped", steps{counts + ok}, 1, errMisfit},
	{"the first reply missing", steps{counts}, 1, errMisfit},
	{"the second reply missing", steps{ok}, 1, ErrStalled},
	{"no reply", nil, 0, ErrStalled},
	{"one reply too many", steps{ok + counts + ok}, 2, ErrUnsolicited},
	{"one byte too many", steps{ok + counts + "+"}, 2, ErrUnsolicited},
	{"one error too many", steps{ok + counts + "-ERR " + marked + "\r\n"}, 2, ErrUnsolicited},
	{"OK twice", steps{ok + ok + counts}, 2, errMisfit},
	{"our own words", steps{string(newDemand(1).Buf)}, 1, errMisfit},
}

// nested opens arrays for ever.
const nested = "*1\r\n"

// floodServers send more than anybody would keep.
var floodServers = []hostile{
	{"arrays in arrays, a hundred thousand", steps{floodOf(nested, 100_000*len(nested))}, 0, resp.TooDeep},
	{"arrays in arrays, twenty million", steps{floodOf(nested, 20_000_000*len(nested))}, 0, resp.TooDeep},
	{"maps in maps", steps{floodOf("%1\r\n", 1<<20)}, 0, resp.TooDeep},
	{"attributes in attributes", steps{floodOf("|1\r\n", 1<<20)}, 0, resp.TooDeep},
	{"attributes before attributes", steps{floodOf("|0\r\n", 1<<20)}, 0, resp.TooManyElements},
	{"attributes of text", steps{floodOf("|1\r\n+a\r\n+b\r\n", 1<<20)}, 0, resp.TooManyElements},
	{"one attribute of long texts", steps{"|500\r\n", floodOf("+"+strings.Repeat("x", 50)+"\r\n", 1<<20)}, 0, ErrOversized},
	{"one array of long texts", steps{"*5\r\n", floodOf("$4000\r\n"+strings.Repeat("x", 4000)+"\r\n", 1<<20)}, 0, ErrOversized},
	{"a line without end", steps{"+", floodOf("x", 64<<20)}, 0, resp.LineTooLong},
	{"an error without end", steps{"-", floodOf(marked+" ", 64<<20)}, 0, resp.LineTooLong},
	{"a line without end, byte by byte", steps{packets("+" + strings.Repeat("x", 2<<10))}, 0, resp.LineTooLong},
	{"digits without end", steps{":", floodOf("1", 64<<20)}, 0, resp.LineTooLong},
	{"NUL without end", steps{floodOf("\x00", 64<<20)}, 0, resp.UnknownKind},
	{"line breaks without end", steps{floodOf("\r\n", 64<<20)}, 0, resp.UnknownKind},
	{"replies without end", steps{ok + counts, floodOf(ok, 64<<20)}, 2, ErrUnsolicited},
	{"errors without end", steps{floodOf("-ERR "+marked+"\r\n", 64<<20)}, 2, ErrUnsolicited},
	{"integers without end", steps{floodOf(":1\r\n", 64<<20)}, 1, errMisfit},
	{"pushes, and the end", steps{floodOf(">2\r\n+x\r\n+y\r\n", 4<<20), hangUp}, some, nil},
	{"empty pushes, and the end", steps{floodOf(">0\r\n", 1<<20), hangUp}, some, nil},
	{"long pushes, and the end", steps{floodOf(">2\r\n+x\r\n$4000\r\n"+strings.Repeat("x", 4000)+"\r\n", 4<<20), hangUp}, some, nil},
	{"pushes between the replies, and the end", steps{ok, floodOf(">1\r\n+x\r\n", 1<<20), counts, hangUp}, some, nil},
}

// endingServers go away, or as good as that.
var endingServers = []hostile{
	{"end", steps{hangUp}, 0, nil},
	{"end behind a byte", steps{"+", hangUp}, 0, nil},
	{"end in mid-reply", steps{ok + counts[:len(counts)-1], hangUp}, 1, nil},
	{"end between replies", steps{ok, hangUp}, 1, nil},
	{"end behind the last", steps{ok + counts, hangUp}, 2, nil},
	{"end behind an error", steps{"-ERR max number of clients reached\r\n", hangUp}, 1, nil},
	{"reset", steps{cut}, 0, nil},
	{"reset in mid-reply", steps{ok[:3], cut}, 0, nil},
	{"reset between replies", steps{ok, cut}, some, nil},
	{"reset behind the last", steps{ok + counts, cut}, some, nil},
	{"half-close", steps{half}, 0, io.ErrUnexpectedEOF},
	{"half-close in mid-reply", steps{ok[:3], half}, 0, io.ErrUnexpectedEOF},
	{"half-close inside a bulk", steps{"$3\r\nOK", half}, 0, io.ErrUnexpectedEOF},
	{"half-close inside an array", steps{ok + "*2\r\n:1\r\n", half}, 1, io.ErrUnexpectedEOF},
	{"half-close between replies", steps{ok, half}, 1, io.ErrUnexpectedEOF},
	{"half-close behind the last", steps{ok + counts, half}, 2, io.ErrUnexpectedEOF},
	{"silence behind a byte", steps{"+"}, 0, ErrStalled},
	{"silence behind a length", steps{"$4096\r\n"}, 0, ErrStalled},
	{"silence inside a bulk", steps{"$4096\r\n" + strings.Repeat("x", 4000)}, 0, ErrStalled},
	{"silence inside an array", steps{ok + "*1024\r\n" + strings.Repeat(":1\r\n", 1000)}, 1, ErrStalled},
	{"silence behind an attribute", steps{"|1\r\n+a\r\n+b\r\n"}, 0, ErrStalled},
	{"silence between replies", steps{ok, mute}, 1, ErrStalled},
	{"silence byte by byte", steps{packets(ok + counts[:len(counts)-1])}, 1, ErrStalled},
}

// noRecord says that TLS found no record of its own.
func noRecord(err error) bool {
	var header tls.RecordHeaderError
	return errors.As(err, &header)
}

// noMAC says that TLS found a record that its peer has not written.
func noMAC(err error) bool {
	var refused *net.OpError
	return errors.As(err, &refused) && refused.Op == "local error" && strings.Contains(err.Error(), "bad record MAC")
}

// tlsServers break what is below RESP.
var tlsServers = []hostile{
	{"a reply in the clear", steps{below(ok + counts)}, 0, noRecord},
	{"a reply in the clear behind one that is not", steps{ok, below(counts)}, 1, noRecord},
	{"an alert in the clear", steps{below("\x15\x03\x03\x00\x02\x02\x28")}, 0, noMAC},
	{"an alert in the clear in mid-reply", steps{ok[:3], below("\x15\x03\x03\x00\x02\x02\x28")}, 0, noMAC},
	{"a goodbye in the clear", steps{below("\x15\x03\x03\x00\x02\x01\x00")}, 0, noMAC},
	{"a hello in mid-reply", steps{ok, below("\x16\x03\x03\x00\x04\x00\x00\x00\x00")}, 1, noMAC},
	{"a record of noise", steps{below("\x17\x03\x03\x00\x20" + strings.Repeat("x", 32))}, 0, noMAC},
	{"a record of nothing", steps{below("\x17\x03\x03\x00\x00")}, 0, noMAC},
	{"a record of too much", steps{below("\x17\x03\x03\xff\xff")}, 0, noRecord},
	{"a record of another version", steps{below("\x17\x02\x00\x00\x20" + strings.Repeat("x", 32))}, 0, noRecord},
	{"a record of much noise", steps{below("\x17\x03\x03\x40\x00" + strings.Repeat("x", 1<<16))}, 0, noMAC},
	{"silence inside a record", steps{ok, below("\x17\x03\x03\x40\x00xxxx")}, 1, ErrStalled},
	{"the end inside a record", steps{ok, below("\x17\x03\x03\x40\x00xxxx"), cut}, some, nil},
}
