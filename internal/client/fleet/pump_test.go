package fleet

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// slowEnd is a connection with calls that take a while to notice that it was closed.
type slowEnd struct {
	net.Conn
	ended *atomic.Int64
}

func (c slowEnd) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil {
		time.Sleep(5 * time.Millisecond) // the end is slow
		c.ended.Add(1)
	}
	return n, err
}

// Behind Close and Drain no goroutine of a connection runs any more: at once, not
// soon.
func TestCloseWaitsForPumps(t *testing.T) {
	var ended atomic.Int64
	r := newUpFleet(t, true, 3, func(cfg *Config) {
		cfg.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			nc, err := new(net.Dialer).DialContext(ctx, network, addr)
			return slowEnd{nc, &ended}, err
		}
	})
	r.do(r.Close)
	r.Drain()
	assert.EqualValues(t, 3, ended.Load())
}
