//go:build !race

package conn

import (
	"errors"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/testkit"
	"github.com/redlock-go/redlock/internal/testkit/scripted"
)

// TestSendAndSweepAllocateNothing counts what the whole process allocates, so
// its server must not allocate either.
func TestSendAndSweepAllocateNothing(t *testing.T) {
	request := encode("ECHO", "x")
	const answer, commands = "$1\r\nx\r\n", 10
	parrot := func(p *scripted.Server) {
		p.Serve = func(nc net.Conn) {
			in := make([]byte, commands*len(request))
			var out []byte
			for range commands {
				out = append(out, answer...)
			}
			for {
				for n := 0; n < len(in); {
					k, err := nc.Read(in[n:])
					if err != nil {
						return
					}
					n += k
				}
				if _, err := nc.Write(out); err != nil {
					return
				}
			}
		}
	}
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		r := newTestFleet(t, portable, scripted.NewN(t, 3, parrot))
		r.allUp()
		var b Batch
		for range commands {
			b.Buf = append(b.Buf, request...)
		}
		count := new(tally)
		b.Replies, b.Owner = commands, count
		r.lock.Lock()
		defer r.lock.Unlock()
		trip := func() {
			before := count.doneCalls
			r.Send(&b)
			for count.doneCalls == before {
				if r.Arm(); portable {
					r.Wait()
				}
				r.Sweep(1e6)
			}
			r.Check()
			_ = r.Node(0)
		}
		for range 300 { // until every buffer has its size
			trip()
		}
		require.Zero(t, testing.AllocsPerRun(300, trip))
		require.Zero(t, count.failures)
		require.Equal(t, 3*commands*count.doneCalls, count.replies)
	})
}

// Each batch is failed at once by each node that is down.
func TestNotSentIsAskedForWithoutAllocating(t *testing.T) {
	var err error = &notSent{&Error{Addr: "a", Op: "dial", Err: ErrDown}}
	var is, isDown bool
	got := testing.AllocsPerRun(100, func() { is, isDown = errors.Is(err, ErrNotSent), errors.Is(err, ErrDown) })
	require.Zero(t, got)
	require.True(t, is)
	require.True(t, isDown)
}
