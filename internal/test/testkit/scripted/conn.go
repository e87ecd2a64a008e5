package scripted

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/base/errno"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/resp"
)

// Conn is the server's end of a connection.
type Conn struct {
	net.Conn
	T testing.TB // may be nil where nothing is required of the connection
}

// Steps are done by a server in order: strings are written, a Verb is done, a Flood goes on until
// it has an end, and Raw bytes go past TLS.
type Steps []any

// Verb is a step without bytes.
type Verb string

// The actions of a server besides writing.
const (
	HangUp    Verb = "hang up" // close in order
	CutOff    Verb = "cut"     // close by reset
	HalfClose Verb = "half"    // close the way to the client only
	Mute      Verb = "mute"    // stay silent, and read nothing
	Drip      Verb = "drip"    // send a byte now and then, until the client has gone
)

// Play executes the steps of a script, and reports whether the connection goes on.
func (w *Conn) Play(s Steps) bool {
	for _, step := range s {
		switch step := step.(type) {
		case string:
			_, _ = w.Write([]byte(step)) // the client may be gone, rightly
		case Verb:
			switch step {
			case HangUp:
				_ = w.Close()
				return false
			case CutOff:
				w.Cut()
				return false
			case HalfClose:
				w.Half()
			case Mute:
				return false
			case Drip:
				for {
					if _, err := w.Write([]byte("x")); err != nil {
						return false
					}
					time.Sleep(time.Millisecond) // the step is a delay
				}
			}
		case Flood:
			for sent := 0; sent < step.total; sent += len(step.block) {
				if _, err := w.Write(step.block); err != nil {
					return false
				}
			}
		case Raw:
			if _, err := Below(w.Conn).Write([]byte(step)); err != nil {
				return false
			}
		default:
			panic(fmt.Sprintf("no such step: %v", step))
		}
	}
	return true
}

// Cut closes by reset.
func (w *Conn) Cut() {
	below := Below(w.Conn)
	if tcp, ok := below.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = below.Close()
}

// Below is the socket below a TLS connection, or nc itself.
func Below(nc net.Conn) net.Conn {
	if wrapped, ok := nc.(interface{ NetConn() net.Conn }); ok {
		return wrapped.NetConn()
	}
	return nc
}

// Half closes the way to the client only.
func (w *Conn) Half() {
	_ = w.Conn.(interface{ CloseWrite() error }).CloseWrite()
}

func (w *Conn) Send(s string) {
	w.T.Helper()
	_, err := w.Write([]byte(s))
	require.NoError(w.T, err)
}

// Expect reads exactly want.
func (w *Conn) Expect(want string) {
	w.T.Helper()
	require.NoError(w.T, w.SetReadDeadline(time.Now().Add(testkit.Patience)))
	got := make([]byte, len(want))
	for n := 0; n < len(got); {
		k, err := w.Read(got[n:])
		require.NoError(w.T, err, "after %d of %d bytes", n, len(want))
		n += k
	}
	if string(got) != want { // not Equal: megabytes of difference are of no use
		require.FailNow(w.T, "other bytes than those sent")
	}
}

// Rest reads to the end and returns the number of bytes and the reason for the end; nil is a proper
// close.
func (w *Conn) Rest() (n int, err error) {
	w.T.Helper()
	require.NoError(w.T, w.SetReadDeadline(time.Now().Add(testkit.Patience)))
	buf := make([]byte, 64<<10)
	for {
		k, err := w.Read(buf)
		n += k
		if err != nil {
			if errors.Is(err, errno.ConnReset) || errors.Is(err, errno.BrokenPipe) {
				return n, errno.ConnReset
			}
			if err.Error() == "EOF" {
				err = nil
			}
			return n, err
		}
	}
}

// Flood is a step: a block of bytes again and again, up to so many in total. The block exists
// before, so a flood costs its server no memory.
type Flood struct {
	block []byte
	total int
}

// FloodOf makes a flood of a unit.
func FloodOf(unit string, total int) Flood {
	return Flood{[]byte(strings.Repeat(unit, 1+(32<<10)/len(unit))), total}
}

// Raw is a step: bytes past TLS, if there is any.
type Raw string

// AwaitEnd waits until the client has closed, in any manner.
func (w *Conn) AwaitEnd(who string) {
	w.T.Helper()
	nc := Below(w.Conn)
	if nc.SetReadDeadline(time.Now().Add(testkit.Patience)) != nil {
		return // closed by its own server
	}
	buf := make([]byte, 4<<10)
	for err := error(nil); err == nil; {
		_, err = nc.Read(buf)
		require.NotErrorIs(w.T, err, os.ErrDeadlineExceeded, "%s: the client has not closed", who)
	}
}

// Hold sets how many bytes the server's kernel takes before it reads them.
func (w *Conn) Hold(bytes int) {
	if tcp, ok := w.Conn.(*net.TCPConn); ok {
		require.NoError(w.T, tcp.SetReadBuffer(bytes))
	}
}

// Echo answers ECHO until the connection ends, for Server.Serve.
func Echo(nc net.Conn) {
	var in, out []byte
	buf := make([]byte, 64<<10)
	for {
		k, err := nc.Read(buf)
		if err != nil {
			return
		}
		in, out = append(in, buf[:k]...), out[:0]
		for {
			args, rest := CutCommand(in)
			if args == nil {
				break
			}
			in, out = rest, resp.AppendBulkString(out, args[1])
		}
		if _, err := nc.Write(out); err != nil {
			return
		}
	}
}
