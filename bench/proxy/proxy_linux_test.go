package proxy

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/test/testkit"
)

func TestMain(m *testing.M) {
	testkit.ChildrenEndAtOnce()
	ServeIfProxy()
	os.Exit(m.Run())
}

// echo is a backend that sends back what it gets.
func echo(t *testing.T) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(c, c)
				_ = c.Close()
			}()
		}
	}()
	return ln.Addr().String()
}

// start is a proxy before one echo.
func start(t *testing.T) *Proxy {
	p, err := Start([]string{echo(t)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}

func dialT(t *testing.T, addr string) net.Conn {
	c, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// ask sends text and waits for it to come back.
func ask(t *testing.T, c net.Conn, text string) time.Duration {
	start := time.Now()
	_, err := c.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, c.SetReadDeadline(start.Add(30*time.Second)))
	got := make([]byte, len(text))
	_, err = io.ReadFull(c, got)
	require.NoError(t, err)
	require.Equal(t, text, string(got))
	return time.Since(start)
}

func TestCarries(t *testing.T) {
	t.Parallel()
	p := start(t)
	c := dialT(t, p.Addrs[0])
	ask(t, c, "hello")
	big := make([]byte, 8<<20)
	go func() {
		_, _ = c.Write(big)
		_ = c.(*net.TCPConn).CloseWrite()
	}()
	got, err := io.ReadAll(c)
	require.NoError(t, err, "the end arrives too, after everything")
	require.Len(t, got, len(big))
}

func TestDelay(t *testing.T) {
	t.Parallel()
	p := start(t)
	c := dialT(t, p.Addrs[0])
	const rtt = 30 * time.Millisecond
	require.NoError(t, p.Delay(0, rtt, 0))
	require.GreaterOrEqual(t, ask(t, c, "one"), rtt)
	require.NoError(t, p.Delay(0, rtt, rtt))
	for range 5 {
		require.GreaterOrEqual(t, ask(t, c, "another"), rtt)
	}

	// Bytes under way are delayed together: a hundred messages do not take a
	// hundred times as long. They would take 20 s one by one.
	require.NoError(t, p.Delay(0, 200*time.Millisecond, 0))
	begin := time.Now()
	for range 100 {
		_, err := c.Write([]byte("x"))
		require.NoError(t, err)
		time.Sleep(100 * time.Microsecond)
	}
	_, err := io.ReadFull(c, make([]byte, 100))
	require.NoError(t, err)
	require.Less(t, time.Since(begin), 15*time.Second)
}

func silent(t *testing.T, c net.Conn) {
	_, err := c.Write([]byte("x"))
	require.NoError(t, err)
	require.NoError(t, c.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
	_, err = c.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
}

// TestFaults: a node that carries nothing keeps its connections, and what was
// sent meanwhile arrives; one that refuses loses them.
func TestFaults(t *testing.T) {
	t.Parallel()
	p := start(t)
	for _, c := range []struct {
		begin        func(int) error
		keeps, dials bool
	}{{p.Hang, true, true}, {p.Refuse, false, false}, {p.BlackHole, true, false}} {
		old := dialT(t, p.Addrs[0])
		ask(t, old, "before")
		require.NoError(t, c.begin(0))
		if c.keeps {
			silent(t, old)
		} else {
			_, err := old.Read(make([]byte, 1))
			require.ErrorIs(t, err, syscall.ECONNRESET)
		}
		if other, err := net.DialTimeout("tcp", p.Addrs[0], 300*time.Millisecond); c.dials {
			require.NoError(t, err)
			silent(t, other)
			require.NoError(t, other.Close())
		} else {
			var slow net.Error
			require.True(t, errors.As(err, &slow))
			require.Equal(t, c.keeps, slow.Timeout(), "%v", err)
		}
		require.NoError(t, p.Pass(0))
		if c.keeps {
			require.NoError(t, old.SetReadDeadline(time.Time{}))
			_, err := io.ReadFull(old, make([]byte, 1))
			require.NoError(t, err, "what was sent meanwhile arrives")
		}
		ask(t, dialT(t, p.Addrs[0]), "after")
	}
}
