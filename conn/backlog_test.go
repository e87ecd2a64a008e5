package conn

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/test/testkit"
)

// clog sends batches until more than limit bytes wait in a node's queue because
// its other end does not read.
func (r *testFleet) clog(node, limit int) (sent []*ledger) {
	r.t.Helper()
	r.wires[node].Hold(128 << 10) // above a segment of loopback: a sender waits 200 ms before it sends into a smaller window
	for waiting := 0; waiting < limit; {
		l := r.sendLarge(64<<10, tagsOf(3)...)
		sent = append(sent, l)
		r.meanwhile(func() {
			for i, w := range r.wires {
				if i != node {
					w.Expect(string(l.Buf))
					w.Send(echoes(l.tags...))
				}
			}
		})
		r.until("for the others to be answered", func() bool { return l.due == 1 })
		r.do(func() { waiting = r.waiting(node) })
	}
	return sent
}

// waiting is how many bytes of a node's queue the kernel has not taken.
func (r *testFleet) waiting(node int) (n int) {
	q := r.nodes[node].owed
	for i := q.unsent; i < q.len; i++ {
		n += len(q.at(i).Buf)
	}
	return n - q.offset
}

// A server that stops reading delays neither the caller nor the
// other nodes. When it reads again it finds everything, in order.
func TestAServerThatStopsReading(t *testing.T) {
	test := func(t *testing.T, r *testFleet) {
		for range 2 {
			sent := r.clog(1, 1<<20)
			r.wires[1].Hold(1 << 20)
			r.meanwhile(func() {
				for _, l := range sent {
					r.answer(l, 1)
				}
			})
			r.awaitDone(sent...)
			r.do(func() { assert.Zero(t, r.waiting(1)) })
			for _, l := range sent {
				assert.NoError(t, l.errOf(1))
			}
		}
		r.works()
	}
	onBothPaths(t, 3, test)
	t.Run("TLS", func(t *testing.T) {
		server, client := testkit.NewIdentity(t)
		r := newTLSFleet(t, server, client)
		r.up()
		r.do(func() { assert.False(t, r.CanBlock(), "TLS on one node makes all of them portable") })
		test(t, r)
	})
}

// A clogged connection ends. Its batches fail: as "not sent" from
// the first batch on of which no byte was written, and not before.
func TestTheEndOfAClog(t *testing.T) {
	for name, end := range map[string]struct {
		kill  func(r *testFleet)
		want  error
		exact bool // the kernel takes nothing more meanwhile
	}{
		"reset":   {func(r *testFleet) { r.wires[1].Cut() }, nil, false},
		"stalled": {func(r *testFleet) { r.clock.Advance(defaultStallTimeout + 1); r.do(r.Check) }, ErrStalled, true},
		"refused": {func(r *testFleet) { r.wires[1].Send("x") }, nil, false},
		"closed":  {func(r *testFleet) { r.do(r.Close) }, ErrClosed, true},
	} {
		t.Run(name, func(t *testing.T) {
			onBothPaths(t, 3, func(t *testing.T, r *testFleet) {
				sent := r.clog(1, 1<<20)
				var written int
				r.do(func() {
					written = r.nodes[1].owed.unsent
					if r.nodes[1].owed.offset > 0 {
						written++ // in part
					}
				})
				require.Positive(t, written)
				require.Less(t, written, len(sent))
				end.kill(r)
				if name != "closed" {
					r.lose(1)
				}
				unsent := 0
				for i, l := range sent {
					require.Equal(t, 1, l.doneCalls)
					require.Error(t, l.errOf(1))
					var of *Error
					assert.ErrorAs(t, l.errOf(1), &of)
					assert.Equal(t, r.peers[1].Addr, of.Addr)
					if end.want != nil {
						assert.ErrorIs(t, l.errOf(1), end.want)
					}
					switch {
					case errors.Is(l.errOf(1), ErrNotSent):
						unsent++
						assert.GreaterOrEqual(t, i, written)
					case i >= written:
						assert.False(t, end.exact, "batch %d of %d written", i, written)
						assert.Zero(t, unsent, "written behind one that was not")
					}
				}
				assert.Positive(t, unsent)
				if name != "closed" {
					r.up()
					r.works()
				}
			})
		})
	}
}

type layer struct{ net.Conn }

func (l layer) NetConn() net.Conn { return l.Conn }

func layered(cfg *Config) {
	cfg.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		nc, err := new(net.Dialer).DialContext(ctx, network, addr)
		return layer{nc}, err
	}
}

// How a connection that owes something is closed: by reset, so that nothing
// which is not sent yet is delivered late.
func TestCloseResetsWhatIsOwed(t *testing.T) {
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		t.Run("nothing", func(t *testing.T) {
			r := newUpFleet(t, portable, 2)
			r.works()
			r.do(r.Close)
			for _, w := range r.wires {
				n, err := w.Rest()
				assert.NoError(t, err)
				assert.Zero(t, n)
			}
		})
		for name, dialer := range map[string]func(*Config){"a reply": func(*Config) {}, "a reply, over a layer": layered} {
			t.Run(name, func(t *testing.T) {
				r := newUpFleet(t, portable, 2, dialer)
				l := r.send("x")
				for _, w := range r.wires {
					w.Expect(string(l.Buf))
				}
				r.wires[0].Send(echoes("x"))
				r.until("for the first", func() bool { return l.nodes[0].ended })
				r.do(r.Close)
				assert.NoError(t, l.errOf(0))
				assert.ErrorIs(t, l.errOf(1), ErrClosed)
				assert.NotErrorIs(t, l.errOf(1), ErrNotSent)
				_, err := r.wires[0].Rest()
				assert.NoError(t, err)
				_, err = r.wires[1].Rest()
				assert.Error(t, err, "it must learn that the connection is gone")
			})
		}
	})
}
