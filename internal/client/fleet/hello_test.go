package fleet

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/base/errno"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
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
		r.do(func() { assert.Equal(t, p.RunID, r.nodes[0].id.runID) })
	})
}

// RESP2 is remembered while the server is there, and forgotten once it was away:
// it may come back as another.
func TestRESP2IsRememberedForAWhile(t *testing.T) {
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		server := fakeredis.StartN(t, 1)[0]
		server.ErrorReply("HELLO", "ERR unknown command 'HELLO'", 0)
		server.ErrorReply("INFO", "LOADING Redis is loading the dataset in memory", 5)
		r := newTestFleet(t, portable, nil, onServer(server))
		r.until("for the server", func() bool { return r.Up(0) })
		assert.EqualValues(t, 1, server.Count("HELLO"), "through five failures behind it")

		server.ResetConns()
		r.until("for the loss", func() bool { return server.Count("HELLO") == 2 })
		r.until("for the server", func() bool { return r.Up(0) })
		assert.EqualValues(t, 2, server.Count("HELLO"))

		// The next dialer finds it loading, then gone, and then upgraded.
		server.ErrorReply("INFO", "LOADING Redis is loading the dataset in memory", 0)
		server.ResetConns()
		r.until("for it to be loading", func() bool { return !r.Up(0) && server.Count("INFO") > 30 })
		assert.EqualValues(t, 3, server.Count("HELLO"))
		server.Down()
		r.until("for it to be gone", func() bool { return errors.Is(r.Fault(0), errno.ConnRefused) })
		require.NoError(t, server.Heal())
		r.until("for the server", func() bool { return r.Up(0) })
		assert.EqualValues(t, 4, server.Count("HELLO"))
	})
}

// A proxy that takes AUTH before any other command is given that, and one that hangs up at HELLO is greeted without it.
func TestProxiesWithoutHello(t *testing.T) {
	for name, set := range map[string]func(*scripted.Server){
		"wants AUTH first": answers("HELLO", "-NOAUTH "+marked+"\r\n"),
		"hangs up": func(p *scripted.Server) {
			p.Greeting = func(n int, honest string) scripted.Steps {
				if n == 0 {
					return scripted.Steps{scripted.HangUp}
				}
				return scripted.Steps{honest}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
				p := scripted.New(t, set)
				r := newTestFleet(t, portable, []*scripted.Server{p}, with("me", marked, 0))
				r.AwaitFirst(nil, nil)
				r.do(func() { require.NoError(t, r.Fault(0)) })
				r.up()
				r.works()
				require.EqualValues(t, 2, p.Dialled.Load(), "at once")
				require.False(t, r.look(0).Pushes)
			})
		})
	}
}
