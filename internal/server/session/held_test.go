package session

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestHeld: a message behind a command that waits for another one keeps its place, and is no
// command. A refused one keeps no argument.
func TestHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var push Push
		s, dial := serve(Limits{Memory: 4*small + 650}, func(_ int64, _ net.Addr, p Push) Commands {
			push = p
			return echo{}
		})
		mine := dial()
		_, err := mine.Write([]byte("WAIT\r\nECHO " + strings.Repeat("x", 600) + "\r\nPING\r\n"))
		require.NoError(t, err)
		synctest.Wait()
		push(func(r *Reply) { r.Simple("message") })
		synctest.Wait()
		for n := range s.sessions {
			kept := 0
			n.mu.Lock()
			for r := n.first; r != nil; r = r.next {
				kept += len(strings.Join(r.args, ""))
			}
			n.mu.Unlock()
			require.Less(t, kept, 100, "the refused one's are among them")
		}
		expect(t, mine, "+WAIT\r\n-OOM "+string(errNoMemory)+"\r\n+PING\r\n+message\r\n")
		require.NoError(t, mine.Close())
		s.Stop(t.Context())
		synctest.Wait()
		require.Zero(t, s.budget.used.Load())
	})
}

// TestSlowHandshake: a TLS connection has as long for its handshake as for a command. One beyond the limit, silent in its
// handshake, holds up no other.
func TestSlowHandshake(t *testing.T) {
	certified := httptest.NewTLSServer(nil)
	defer certified.Close()
	synctest.Test(t, func(t *testing.T) {
		s := New(Limits{Clients: 2}, newEcho)
		l := make(pipes)
		go func() { _ = s.Serve(l) }()
		mine, theirs := net.Pipe()
		silent, other := net.Pipe()
		l <- tls.Server(theirs, certified.TLS)
		l <- tls.Server(other, certified.TLS)
		_, third := net.Pipe()
		l <- tls.Server(third, certified.TLS)
		time.Sleep(2 * acceptPause)
		require.EqualValues(t, 1, s.stats.Refused.Load())
		time.Sleep(3 * parkEvery)
		client := tls.Client(mine, &tls.Config{InsecureSkipVerify: true})
		_, err := client.Write([]byte("PING\r\n"))
		require.NoError(t, err)
		for range 2 {
			expect(t, client, "+PING\r\n")
			time.Sleep(10 * s.limits.Read) // it is parked
			_, err = client.Write([]byte("PING\r\n"))
			require.NoError(t, err)
		}
		_, err = silent.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
		again, last := net.Pipe()
		l <- last
		_, err = again.Write([]byte("PING\r\n"))
		require.NoError(t, err)
		expect(t, again, "+PING\r\n")
		require.NoError(t, again.Close())
		require.NoError(t, mine.Close())
		s.Stop(t.Context())
	})
}

// refusing answers OK in twenty milliseconds, and REFUSED with an error at once.
type refusing struct{ known }

func (refusing) Plan(args []string, r *Reply) Plan {
	return Plan{Run: func(ctx context.Context, r *Reply) func() {
		if args[0] == "REFUSED" {
			r.Error("ERR")
			return nil
		}
		time.Sleep(20 * time.Millisecond)
		r.OK()
		return nil
	}}
}

// TestRefusedIsNoMeasure: a command refused before the nodes were asked makes the room no smaller for the others.
func TestRefusedIsNoMeasure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, dial := serve(Limits{}, func(int64, net.Addr, Push) Commands { return refusing{} })
		mine := dial()
		go func() { _, _ = io.Copy(io.Discard, mine) }()
		for range 20 {
			_, err := mine.Write([]byte("REFUSED\r\n" + strings.Repeat("OK\r\n", 50)))
			require.NoError(t, err)
			time.Sleep(time.Second)
		}
		require.GreaterOrEqual(t, s.gate.room, float64(startRoom))
		require.NoError(t, mine.Close())
		s.Stop(t.Context())
	})
}
