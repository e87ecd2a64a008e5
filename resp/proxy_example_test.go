package resp_test

import (
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/redlock-go/redlock/resp"
)

// proxy forwards commands to a server and replies to a client, one after another. It answers PING itself.
func proxy(client, server net.Conn) {
	defer client.Close()
	defer server.Close()
	fromClient, fromServer := &stream{Conn: client}, &stream{Conn: server}
	var out []byte
	for {
		command, frame, err := fromClient.next()
		if err != nil {
			return
		}
		name := command.Elements()
		if name.Next() && string(name.Value().Bytes) == "PING" {
			out = resp.AppendLine(out[:0], resp.SimpleString, "PONG")
		} else if _, err = server.Write(frame); err != nil {
			return
		} else if _, frame, err = fromServer.next(); err != nil {
			out = resp.AppendLine(out[:0], resp.Error, "ERR proxy: "+err.Error())
		} else {
			out = append(out[:0], frame...)
		}
		if _, err := client.Write(out); err != nil {
			return
		}
	}
}

// stream is a connection with what was read of it. A frame is valid until the next.
type stream struct {
	net.Conn
	decoder   resp.Decoder
	buf       []byte
	from, end int // of what is unread in buf
}

func (s *stream) next() (v resp.Value, frame []byte, err error) {
	for {
		n, err := s.decoder.Decode(s.buf[s.from:s.end], &v)
		if err == nil {
			s.from += n
			return v, s.buf[s.from-n : s.from], nil
		}
		if !errors.Is(err, resp.ErrIncomplete) {
			return v, nil, err
		}
		s.end = copy(s.buf, s.buf[s.from:s.end])
		s.from = 0
		if s.end == len(s.buf) {
			s.buf = append(s.buf, make([]byte, 4096)...)
		}
		n, err = s.Read(s.buf[s.end:])
		s.end += n
		if n == 0 && err != nil {
			return v, nil, err
		}
	}
}

// A small proxy needs this package alone: it decodes commands and replies, forwards frames as they came, and writes
// replies of its own.
func Example_proxy() {
	client, front := net.Pipe()
	back, server := net.Pipe()
	go proxy(front, back)
	go func() { // a server that answers every command with an empty map
		in := &stream{Conn: server}
		for {
			if _, _, err := in.next(); err != nil {
				return
			}
			_, _ = server.Write(resp.AppendHeader(nil, resp.Map, 0))
		}
	}()

	replies := &stream{Conn: client}
	for _, command := range []string{"PING", "HELLO"} {
		go func() {
			_, _ = client.Write(resp.AppendBulkString(resp.AppendArray(nil, 1), command))
		}()
		_, frame, err := replies.next()
		fmt.Printf("%s: %q %v\n", command, frame, err)
	}
	client.Close()
	_, err := server.Read(make([]byte, 1))
	fmt.Println(err == io.EOF)
	// Output:
	// PING: "+PONG\r\n" <nil>
	// HELLO: "%0\r\n" <nil>
	// true
}
