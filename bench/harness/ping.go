package harness

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/redlock-go/redlock/bench/result"
)

// pings is how many go to each node in each round: enough for a median, and
// for a p99 over all nodes and rounds.
const pings = 20

// roundTrips measures what the network takes, and no more: one PING after the
// other on an otherwise idle connection to each node. Nodes that do not answer
// are left out.
func (s *site) roundTrips(ctx context.Context, cell result.Cell) *Histogram {
	var all Histogram
	for i, addr := range s.nodes(cell) {
		if !s.away[s.addrs[i]] {
			_ = pingNode(ctx, addr, greeting+pings*cell.RTT*2, &all)
		}
	}
	return &all
}

// connect dials a node. All that follows on the connection has the same limit.
func connect(ctx context.Context, addr string, limit time.Duration) (net.Conn, error) {
	dialer := net.Dialer{Timeout: limit}
	c, err := dialer.DialContext(ctx, "tcp", addr)
	if err == nil {
		_ = c.SetDeadline(time.Now().Add(limit))
	}
	return c, err
}

// pingNode adds the round trips to one node.
func pingNode(ctx context.Context, addr string, limit time.Duration, all *Histogram) error {
	c, err := connect(ctx, addr, limit)
	if err != nil {
		return err
	}
	defer c.Close()
	reply := make([]byte, 256)
	for i := range pings + 1 {
		start := time.Now()
		if _, err := c.Write([]byte("PING\r\n")); err != nil {
			return err
		}
		// The answer is one short line; NOAUTH is as good as PONG.
		for n := 0; n == 0 || reply[n-1] != '\n'; {
			got, err := c.Read(reply[n:])
			if err != nil {
				return err
			}
			n += got
			if n == len(reply) {
				return errors.New("no end of the line")
			}
		}
		if i > 0 { // the first one pays for the connection
			all.Record(time.Since(start), 1)
		}
	}
	return nil
}
