package session

import (
	"context"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// watched is a connection that can tell whether its client has gone.
type watched struct {
	net.Conn
	ended atomic.Bool
	after func() // each read; nil: nothing
}

func (w *watched) Read(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	if w.after != nil && n > 0 {
		w.after()
	}
	return n, err
}

func (w *watched) HasEnded() bool { return w.ended.Load() }

// grants grants, in ten seconds or at once, and counts what is undone.
type grants struct{ undone *atomic.Int64 }

func (grants) Gone() {}

func (g grants) Plan(args []string, r *Reply) Plan {
	return Plan{Run: func(ctx context.Context, r *Reply) func() {
		if args[0] == "SLOW" {
			time.Sleep(10 * time.Second)
		}
		r.Simple(args[0])
		return func() { g.undone.Add(1) }
	}}
}

// grantOn serves grants on one connection.
func grantOn(conn net.Conn) (s *Server, undone *atomic.Int64) {
	undone = new(atomic.Int64)
	s = New(Limits{}, func(int64, Push) Commands { return grants{undone} })
	l := make(pipes)
	go func() { _ = s.Serve(l) }()
	l <- conn
	return s, undone
}

// TestOwn: a client with one command at a time has it run by the goroutine that reads. One that takes
// long does not keep the connection from being read, and one whose client has gone is undone.
func TestOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mine, end := net.Pipe()
		theirs := &watched{Conn: end}
		s, undone := grantOn(theirs)
		send := func(text string) (took time.Duration) { // a pipe takes what is read
			began := time.Now()
			_, err := mine.Write([]byte(text + "\r\n"))
			require.NoError(t, err)
			return time.Since(began)
		}
		expect := func(want string) {
			got := make([]byte, len(want)+3)
			_, err := io.ReadFull(mine, got)
			require.NoError(t, err)
			require.Equal(t, "+"+want+"\r\n", string(got))
		}
		for range 3 {
			for _, readAfter := range []time.Duration{ownTime, 0} { // then two commands were under way before
				require.Zero(t, send("SLOW"))
				require.Equal(t, readAfter, send("QUICK"))
				expect("SLOW")
				expect("QUICK")
			}
			for range stayBusy {
				send("QUICK")
				expect("QUICK")
			}
		}
		require.Zero(t, undone.Load())
		theirs.ended.Store(true)
		send("QUICK")
		_, err := mine.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
		synctest.Wait()
		require.EqualValues(t, 1, undone.Load())
		s.Stop(t.Context())
	})
}

// TestParkedBesideItsCommand: a look for idle connections may come between the read of a command and its
// start. The goroutine that reads in place of the one that runs the command then parks the connection.
func TestParkedBesideItsCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mine, end := net.Pipe()
		theirs := &watched{Conn: end}
		s, undone := grantOn(theirs)
		theirs.after = func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			for n := range s.sessions {
				n.suggestPark()
				n.suggestPark()
			}
		}
		for range 3 {
			_, err := mine.Write([]byte("SLOW\r\n"))
			require.NoError(t, err)
			got := make([]byte, len("+SLOW\r\n"))
			_, err = io.ReadFull(mine, got)
			require.NoError(t, err)
			require.Equal(t, "+SLOW\r\n", string(got))
		}
		require.NoError(t, mine.Close())
		synctest.Wait()
		require.Zero(t, undone.Load())
		s.Stop(t.Context())
	})
}
