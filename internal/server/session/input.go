package session

import (
	"errors"
	"net"
	"sync"

	"github.com/redlock-go/redlock/resp"
)

// input is the bytes sent by a client and not yet read as commands.
type input struct {
	session *session
	tools   *tools // while the connection is not idle
	buf     []byte
	charged int     // bytes of buf in a budget
	of      *budget // this one
}

// tools are the tools for reading commands.
type tools struct {
	decoder resp.Decoder
	small   [small]byte
}

var spareTools = sync.Pool{New: func() any { return new(tools) }}

// begin makes an input beginning with some bytes.
func (i *input) begin(first []byte) {
	i.tools = spareTools.Get().(*tools)
	i.tools.decoder = resp.Decoder{Limits: resp.Limits{Bulk: i.session.server.limits.Bulk, Elements: i.session.server.limits.Arguments, Depth: 1}}
	i.buf = append(i.tools.small[:0], first...)
}

// end gives the resources back. Unread bytes are dropped.
func (i *input) end() {
	i.give()
	spareTools.Put(i.tools)
	i.tools, i.buf = nil, nil
}

// next reads the command behind the first used bytes. n is 0 if it is incomplete.
func (i *input) next(used int) (args []string, n int, err error) {
	args, n, err = read(&i.tools.decoder, i.buf[used:])
	if bad := (*resp.ProtocolError)(nil); errors.As(err, &bad) {
		err = protocolError(bad.Reason)
	}
	return args, n, err
}

// drop drops the first used bytes, and makes room for more. The buffer grows for a larger command,
// and is the small one again after it.
func (i *input) drop(used int) error {
	rest := i.buf[used:]
	if len(rest) == 0 {
		i.give()
		i.buf = i.tools.small[:0]
	} else if used > 0 {
		i.buf = i.buf[:copy(i.buf[:cap(i.buf)], rest)]
	}
	return i.makeRoom()
}

// give gives the charged bytes back.
func (i *input) give() {
	if i.of != nil {
		i.of.give(i.charged)
		i.charged, i.of = 0, nil
	}
}

// makeRoom makes a full buffer larger, up to the bound.
func (i *input) makeRoom() error {
	size, of := 4*cap(i.buf), i.session.budget()
	switch {
	case len(i.buf) < cap(i.buf):
		return nil
	case len(i.buf) >= i.session.mostBytes():
		return errTooBig
	case !of.take(size, false):
		return errNoMemory
	}
	i.give()
	i.charged, i.of, i.buf = size, of, append(make([]byte, 0, size), i.buf...)
	return nil
}

// receive reads more bytes, as many as there is room for.
func (i *input) receive(conn net.Conn) (n int, err error) {
	n, err = conn.Read(i.buf[len(i.buf):cap(i.buf)])
	i.buf = i.buf[:len(i.buf)+n]
	return n, err
}
