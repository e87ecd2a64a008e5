package session

import (
	"context"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// pipes is a listener of connections inside the process.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if c, open := <-p; open {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (p pipes) Close() error   { close(p); return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

// serve serves connections inside the process, and dial makes one.
func serve(limits Limits, commands func(int64, net.Addr, Push) Commands) (s *Server, dial func() net.Conn) {
	s, l := New(limits, commands), make(pipes)
	go func() { _ = s.Serve(l) }()
	return s, func() net.Conn {
		mine, theirs := net.Pipe()
		l <- theirs
		return mine
	}
}

// expect requires the next bytes from a server.
func expect(t *testing.T, from io.Reader, want string) {
	got := make([]byte, len(want))
	_, err := io.ReadFull(from, got)
	require.NoError(t, err)
	require.Equal(t, want, string(got))
}

func newEcho(int64, net.Addr, Push) Commands { return echo{} }

// echo answers each command with its name. WAIT takes ten seconds.
type echo struct{ known }

// known is a client that has logged in, and leaves nothing.
type known struct{}

func (known) Gone()            {}
func (known) IsStranger() bool { return false }

func (echo) Plan(args []string, r *Reply) Plan {
	if args[0] != "WAIT" {
		r.Simple(args[0])
		return Plan{}
	}
	return Plan{Alone: true, Run: func(ctx context.Context, r *Reply) func() {
		time.Sleep(10 * time.Second)
		r.Simple(args[0])
		return nil
	}}
}

// TestParking: an idle connection keeps no buffer, takes commands as before, also one arriving byte
// by byte, and is not parked while a command runs or arrives.
func TestParking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, dial := serve(Limits{}, newEcho)
		mine := dial()
		send := func(text string) {
			_, err := mine.Write([]byte(text))
			require.NoError(t, err)
		}
		expect := func(want string) { expect(t, mine, want) }
		isParked := func() bool {
			synctest.Wait()
			s.mu.Lock()
			defer s.mu.Unlock()
			for n := range s.sessions {
				return n.idle.isParked && n.in.tools == nil && n.tails == nil
			}
			return false
		}
		for range 3 {
			send("PING\r\n")
			expect("+PING\r\n")
			require.False(t, isParked())
			time.Sleep(3 * parkEvery)
			require.True(t, isParked())
			for _, b := range []byte("ECHO\r") {
				send(string(b))
				time.Sleep(parkEvery)
			}
			require.False(t, isParked())
			send("\nPI")
			expect("+ECHO\r\n")
			time.Sleep(7 * time.Second)
			require.False(t, isParked())
			send("NG\r\nWAIT\r\n")
			expect("+PING\r\n")
			time.Sleep(3 * parkEvery)
			require.False(t, isParked())
			expect("+WAIT\r\n")
			time.Sleep(3 * parkEvery)
			require.True(t, isParked())
		}
		send("E") // and no more
		expect("-" + errTooSlow.Error() + "\r\n")
		mine = dial()
		time.Sleep(3 * parkEvery)
		require.True(t, isParked())
		s.Stop(t.Context())
		_, err := mine.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
	})
}
