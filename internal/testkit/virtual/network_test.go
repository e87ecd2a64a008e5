package virtual_test

import (
	"context"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/testkit/virtual"
)

const (
	there = 3 * time.Millisecond
	back  = 5 * time.Millisecond
)

// connect makes a connection over a link with a delay.
func connect(t *testing.T) (l *virtual.Link, client, server net.Conn, n *virtual.Network) {
	n = virtual.NewNetwork(1, 0, 0)
	ln, err := n.Listen("tcp", "node:1")
	require.NoError(t, err)
	t.Cleanup(func() { _ = ln.Close() })
	l = n.Link("host", "node:1")
	l.Delay(there, back, 0)
	began := time.Now()
	client, err = n.Dialer("host")(t.Context(), "tcp", "node:1")
	require.NoError(t, err)
	require.Equal(t, there+back, time.Since(began))
	server, err = ln.Accept()
	require.NoError(t, err)
	return l, client, server, n
}

// reads returns what arrives, when, and how the read ended.
func reads(c net.Conn) (text string, took time.Duration, err error) {
	began, b := time.Now(), make([]byte, 100)
	n, err := c.Read(b)
	return string(b[:n]), time.Since(began), err
}

// TestConn: bytes take their time in each direction, deadlines end reads and writes that
// wait, and a close arrives after what was written.
func TestConn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client, server, _ := connect(t)
		for _, way := range []struct {
			from, to net.Conn
			delay    time.Duration
		}{{client, server, there}, {server, client, back}} {
			_, err := way.from.Write([]byte("one"))
			require.NoError(t, err)
			text, took, err := reads(way.to)
			require.NoError(t, err)
			require.Equal(t, "one", text)
			require.Equal(t, way.delay, took)
		}
		go func() {
			time.Sleep(time.Second)
			_ = client.SetReadDeadline(time.Unix(1, 0)) // ends a read that waits
		}()
		_, took, err := reads(client)
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.Equal(t, time.Second, took)

		require.NoError(t, client.SetWriteDeadline(time.Now().Add(time.Minute)))
		for big := make([]byte, 100<<10); err != nil || took < time.Minute; {
			began := time.Now()
			_, err = client.Write(big)
			if took = time.Since(began); err != nil {
				break
			}
		}
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.NoError(t, client.Close())
		n, err := io.Copy(io.Discard, server)
		require.NoError(t, err, "an end in order")
		require.Positive(t, n)
		require.NoError(t, server.Close())
	})
}

// TestLink: what is held arrives later, in order; what is lost never does, and nothing shows
// it; a reset shows at once.
func TestLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, client, server, n := connect(t)
		l.Hold(true, false)
		for _, text := range []string{"a", "b"} {
			_, err := client.Write([]byte(text))
			require.NoError(t, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := n.Dialer("host")(ctx, "tcp", "node:1")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		go l.Release()
		text, took, err := reads(server)
		require.NoError(t, err)
		require.Equal(t, "ab", text)
		require.Equal(t, there, took)

		l.Reset()
		_, _, err = reads(client)
		require.ErrorIs(t, err, syscall.ECONNRESET)
		l.Refuse(true)
		_, err = n.Dialer("host")(t.Context(), "tcp", "node:1")
		require.ErrorIs(t, err, syscall.ECONNREFUSED)

		l, client, server, _ = connect(t)
		l.Lose()
		_, err = client.Write([]byte("lost"))
		require.NoError(t, err)
		require.NoError(t, client.Close())
		require.NoError(t, server.SetReadDeadline(time.Now().Add(time.Hour)))
		_, took, err = reads(server)
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.Equal(t, time.Hour, took)
	})
}

// TestMachine: the lock of a machine that is suspended ends, and other machines go on.
func TestMachine(t *testing.T) {
	virtual.Run(t, 3, func(w *virtual.World) {
		c, m := w.ClientOn(w.Machine())
		other := w.Client()
		l, err := c.TryAcquire(w.T.Context(), "k", time.Second)
		require.NoError(t, err)
		m.Suspend()
		_, err = other.Acquire(w.T.Context(), "k", time.Minute)
		require.NoError(t, err)
		require.Zero(t, l.Remaining())
		m.Wake()
		require.Zero(t, l.Remaining())
		require.Error(t, l.Release(w.T.Context()))
		require.Equal(t, 3, w.Holders("k"))
	})
}
