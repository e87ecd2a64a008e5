package errno

import (
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestErrno: on each system sockets return the errors named here.
func TestErrno(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	_, err = net.Listen("tcp", l.Addr().String())
	require.ErrorIs(t, err, AddrInUse)
	_, err = net.Listen("tcp", "192.0.2.1:0") // of a documentation network
	require.ErrorIs(t, err, BadAddr)

	peer, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	c, err := l.Accept()
	require.NoError(t, err)
	_, err = peer.Write([]byte("not read"))
	require.NoError(t, err)
	require.NoError(t, c.(*net.TCPConn).SetLinger(0))
	_, err = io.ReadFull(c, make([]byte, 1))
	require.NoError(t, err)
	require.NoError(t, c.Close())
	_, err = peer.Read(make([]byte, 1))
	require.ErrorIs(t, err, ConnReset)
	require.NoError(t, peer.Close())

	require.NoError(t, l.Close())
	_, err = net.Dial("tcp", l.Addr().String())
	require.ErrorIs(t, err, ConnRefused)
}
