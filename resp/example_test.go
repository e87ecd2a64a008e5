package resp_test

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing/iotest"

	"github.com/redlock-go/redlock/resp"
)

// A command is an array of bulks, appended to a buffer that is used again.
func ExampleAppendArray() {
	var buf []byte
	buf = resp.AppendArray(buf[:0], 6)
	buf = resp.AppendBulkString(buf, "SET")
	buf = resp.AppendBulkString(buf, "orders")
	buf = resp.AppendBulk(buf, []byte("token"))
	buf = resp.AppendBulkString(buf, "NX")
	buf = resp.AppendBulkString(buf, "PX")
	buf = resp.AppendBulk(buf, strconv.AppendInt(nil, 30000, 10))
	fmt.Printf("%q\n", buf)
	// Output:
	// "*6\r\n$3\r\nSET\r\n$6\r\norders\r\n$5\r\ntoken\r\n$2\r\nNX\r\n$2\r\nPX\r\n$5\r\n30000\r\n"
}

// A loop decodes the frames that have arrived. The rest stays in the buffer for the
// next read.
func ExampleDecoder_Decode() {
	stream := iotest.OneByteReader(strings.NewReader("+OK\r\n$-1\r\n*2\r\n:1\r\n:0\r\n-READONLY no\r\n"))

	var d resp.Decoder
	var buf []byte
	piece := make([]byte, 512)
	for {
		n, err := stream.Read(piece)
		if err == io.EOF {
			break
		}
		buf = append(buf, piece[:n]...)

		rest := buf
		for len(rest) > 0 {
			var v resp.Value
			n, err := d.Decode(rest, &v)
			if errors.Is(err, resp.ErrIncomplete) {
				break
			}
			if err != nil {
				fmt.Println("close the connection:", err)
				return
			}
			fmt.Println(v.Kind, v.IsOK(), v.Null, v.Int, v.IsError())
			rest = rest[n:]
		}
		buf = append(buf[:0], rest...)
	}
	// Output:
	// simple string true false 0 false
	// bulk false true 0 false
	// array false false 2 false
	// error false false 0 true
}

func ExampleValue_Elements() {
	var d resp.Decoder
	var v resp.Value
	if _, err := d.Decode([]byte("*3\r\n:1\r\n$5\r\ntoken\r\n*2\r\n:2\r\n:3\r\n"), &v); err != nil {
		fmt.Println(err)
		return
	}
	it := v.Elements()
	for it.Next() {
		e := it.Value()
		fmt.Printf("%v %d %q\n", e.Kind, e.Int, e.Bytes)
	}
	// Output:
	// integer 1 ""
	// bulk 0 "token"
	// array 2 ""
}

func ExampleProtocolError() {
	var d resp.Decoder
	var v resp.Value
	_, err := d.Decode([]byte("$99999999999\r\n"), &v)
	var malformed *resp.ProtocolError
	if errors.As(err, &malformed) {
		fmt.Println(malformed)
	}
	// Output:
	// resp: malformed frame at byte 1: bulk too long
}
