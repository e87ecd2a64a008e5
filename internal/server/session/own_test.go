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

// watched is a connection that knows whether its client has gone.
type watched struct {
	net.Conn
	ended atomic.Bool
}

func (w *watched) HasEnded() bool { return w.ended.Load() }

// grants grants, in ten seconds or at once, and counts undone ones.
type grants struct {
	known
	undone *atomic.Int64
}

func (g grants) Plan(args []string, r *Reply) Plan {
	return Plan{Run: func(ctx context.Context, r *Reply) func() {
		if args[0] == "SLOW" {
			time.Sleep(10 * time.Second)
		}
		r.Simple(args[0])
		return func() { g.undone.Add(1) }
	}}
}

// TestOwn: the reading goroutine runs the commands of a client with one at a time, but not of one
// whose commands overlap. A grant to a departed client is undone.
func TestOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mine, end := net.Pipe()
		theirs := &watched{Conn: end}
		undone := new(atomic.Int64)
		s := New(Limits{}, func(int64, net.Addr, Push) Commands { return grants{undone: undone} })
		l := make(pipes)
		go func() { _ = s.Serve(l) }()
		l <- theirs
		send := func(text string) (took time.Duration) { // a pipe takes no bytes before they are read
			began := time.Now()
			_, err := mine.Write([]byte(text + "\r\n"))
			require.NoError(t, err)
			return time.Since(began)
		}
		expect := func(want string) { expect(t, mine, "+"+want+"\r\n") }
		for range 3 {
			require.Zero(t, send("SLOW"))
			go func() { // a pipe has no buffer
				expect("SLOW")
				expect("QUICK")
			}()
			require.Equal(t, 10*time.Second, send("QUICK"))
			synctest.Wait()
			require.Zero(t, send("SLOW\r\nQUICK"))
			require.Zero(t, send("QUICK")) // two commands were under way before
			expect("SLOW")
			expect("QUICK")
			expect("QUICK")
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
