package host

import (
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestHost: a packet that one host sends arrives at the device, and a program of the host ends with it.
func TestHost(t *testing.T) {
	if err := Missing(); err != nil {
		t.Skip("no hosts here: ", err)
	}
	h, err := New(7)
	require.NoError(t, err)
	cmd := exec.Command("bash", "-c", "while true; do echo >/dev/udp/10.77.0.8/9; read -t 0.01 </dev/tcp/10.77.0.7/1; done")
	require.NoError(t, h.Start(cmd))
	b := make([]byte, 2000)
	require.NoError(t, h.Device.SetReadDeadline(time.Now().Add(10*time.Second)))
	for {
		n, err := h.Device.Read(b)
		require.NoError(t, err)
		if n > 20 && b[0]>>4 == 4 {
			require.Equal(t, []byte{10, 77, 0, 7, 10, 77, 0, 8}, b[12:20])
			break
		}
	}
	require.NoError(t, h.Link(false))
	require.NoError(t, h.Link(true))
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	h.Close()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Fatal("a program outlives its host")
	}
}
