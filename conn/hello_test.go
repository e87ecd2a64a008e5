package conn

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/scripted"
	"github.com/redlock-go/redlock/resp"
)

// Pushes answer nothing, wherever they come.
func TestHandshakeSkipsPushes(t *testing.T) {
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		const push = ">2\r\n+invalidate\r\n*1\r\n$1\r\nk\r\n"
		p := scripted.New(t, func(p *scripted.Server) {
			p.Greeting = func(_ int, honest string) scripted.Steps {
				var d resp.Decoder
				var v resp.Value
				pushed := push
				for len(honest) > 0 {
					n, err := d.Decode([]byte(honest), &v)
					assert.NoError(t, err)
					pushed += honest[:n] + push + push
					honest = honest[n:]
				}
				return scripted.Steps{pushed}
			}
		})
		r := newTestFleet(t, portable, []*scripted.Server{p})
		r.up()
		r.works()
		r.do(func() { assert.Equal(t, p.RunID, r.nodes[0].id.RunID) })
	})
}

// A proxy that takes AUTH before any other command is given that, and one that hangs up at HELLO is greeted without it.
func TestProxiesWithoutHello(t *testing.T) {
	for name, test := range map[string]struct {
		set   func(*scripted.Server)
		dials int
	}{
		"wants AUTH first": {answers("HELLO", "-NOAUTH "+marked+"\r\n"), 1},
		"hangs up": {func(p *scripted.Server) {
			p.Greeting = func(n int, honest string) scripted.Steps {
				if n == 0 {
					return scripted.Steps{"+OK\r\n", scripted.HangUp} // to AUTH
				}
				return scripted.Steps{honest}
			}
		}, 2},
		"refuses, and hangs up": {func(p *scripted.Server) {
			p.Greeting = func(n int, honest string) scripted.Steps {
				if n == 0 {
					return scripted.Steps{"+OK\r\n" + scripted.Unknown, scripted.HangUp}
				}
				return scripted.Steps{honest}
			}
		}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
				p := scripted.New(t, test.set)
				r := newTestFleet(t, portable, []*scripted.Server{p}, with("me", marked, 0))
				r.AwaitFirst(nil, nil)
				r.do(func() { require.NoError(t, r.Fault(0)) })
				r.up()
				r.works()
				require.EqualValues(t, test.dials, p.Dialled.Load(), "at once")
				require.False(t, r.look(0).Pushes)
			})
		})
	}
}
