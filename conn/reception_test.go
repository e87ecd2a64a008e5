package conn

import (
	"crypto/tls"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// reception is how something that is no server of ours receives a connection: it
// reads nothing, but says its own words at once.
type reception struct {
	name string
	does steps
}

// receptions are those of the table, and those that say one thing with an end to
// it in order and out of order.
func receptions() []reception {
	rs := slices.Clone(receptionTable)
	for _, r := range receptionTable {
		if _, says := r.does[0].(string); says && len(r.does) == 1 {
			rs = append(rs,
				reception{r.name + ", and the end", append(r.does[:1:1], hangUp)},
				reception{r.name + ", and a reset", append(r.does[:1:1], cut)})
		}
	}
	return rs
}

var receptionTable = []reception{
	{"nothing", steps{hangUp}},
	{"reset", steps{cut}},
	{"half-close", steps{half}},
	{"protected mode", steps{"-DENIED Redis is running in protected mode because protected mode is enabled\r\n"}},
	{"too many clients", steps{"-ERR max number of clients reached\r\n"}},
	{"proxy without a server", steps{"-ERR upstream failure\r\n"}},
	{"moved", steps{"-MOVED 1 127.0.0.1:1\r\n"}},
	{"secret", steps{"-ERR unknown command 'HELLO', with args beginning with: '3' 'AUTH' 'default' '" + marked + "'\r\n"}},
	{"secret in a status", steps{"+" + marked + "\r\n"}},
	{"secret and colours", steps{"-\x1b[31m" + marked + "\x1b[0m\x00\a\b\r\n"}},
	{"HTTP", steps{"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"}},
	{"SSH", steps{"SSH-2.0-OpenSSH_9.6p1\r\n"}},
	{"SMTP", steps{"220 mail.example ESMTP ready\r\n"}},
	{"IMAP", steps{"* OK IMAP4rev1 ready\r\n"}},
	{"POP3", steps{"+OK POP3 ready\r\n"}},
	{"telnet", steps{"\xff\xfd\x18\xff\xfd\x20login: "}},
	{"MySQL", steps{"\x4a\x00\x00\x00\x0a8.0.36\x00\x08\x00\x00\x00"}},
	{"PostgreSQL", steps{"E\x00\x00\x00\x30SFATAL\x00C0A000\x00Munsupported frontend protocol\x00\x00"}},
	{"memcached", steps{"ERROR\r\nERROR\r\n"}},
	{"a TLS alert", steps{"\x15\x03\x01\x00\x02\x02\x28"}},
	{"a TLS hello", steps{"\x16\x03\x03\x00\x2a\x02\x00\x00\x26\x03\x03" + strings.Repeat("x", 35)}},
	{"line breaks", steps{"\r\n\r\n"}},
	{"NUL", steps{"\x00"}},
	{"a null", steps{"$-1\r\n$-1\r\n$-1\r\n$-1\r\n"}},
	{"integers", steps{":1\r\n:1\r\n:1\r\n:1\r\n"}},
	{"a push", steps{">2\r\n+x\r\n+y\r\n", hangUp}},
	{"an empty array", steps{"*0\r\n*0\r\n*0\r\n*0\r\n"}},
	{"a negative length", steps{"$-2\r\n"}},
	{"an extreme length", steps{"$9223372036854775807\r\n"}},
	{"a large array", steps{"*2147483647\r\n"}},
	{"an overflow", steps{":9223372036854775808\r\n"}},
	{"arrays in arrays", steps{floodOf(nested, 4<<20)}},
	{"a line without end", steps{"+", floodOf("x", 64<<20)}},
	{"errors without end", steps{floodOf("-ERR "+marked+"\r\n", 64<<20)}},
	{"OK without end", steps{floodOf(ok, 64<<20)}},
	{"nulls without end", steps{floodOf("$-1\r\n", 64<<20)}},
	{"pushes, and the end", steps{floodOf(">1\r\n+x\r\n", 1<<20), hangUp}},
	{"large maps, and the end", steps{floodOf("%2\r\n+server\r\n+redis\r\n+proto\r\n:3\r\n", 1<<20), hangUp}},
}

// impostor listens where a peer was. It ends with the test, or before.
type impostor struct {
	listener net.Listener
	dialled  atomic.Int64
	running  sync.WaitGroup
}

func newImpostor(t *testing.T, addr string, w way, does steps) *impostor {
	t.Helper()
	im := new(impostor)
	waitFor(t, "to listen on "+addr, func() bool {
		var err error
		im.listener, err = net.Listen("tcp", addr)
		return err == nil
	})
	im.running.Add(1)
	go func() {
		defer im.running.Done()
		for {
			nc, err := im.listener.Accept()
			if err != nil {
				return
			}
			im.dialled.Add(1)
			im.running.Add(1)
			go func() {
				defer im.running.Done()
				im.receive(nc, w, does)
			}()
		}
	}()
	return im
}

func (im *impostor) receive(nc net.Conn, w way, does steps) {
	defer nc.Close()
	_ = nc.SetDeadline(time.Now().Add(patience))
	end := &wire{Conn: nc}
	if w.server != nil {
		tc := tls.Server(nc, w.server)
		if tc.Handshake() != nil {
			return // by a client that is being closed
		}
		end.Conn = tc
	}
	if end.perform(does) {
		_, _ = io.Copy(io.Discard, nc) // until the client has had enough
	}
}

func (im *impostor) stop() {
	_ = im.listener.Close()
	im.running.Wait()
}

// Whoever is found at a node's address, it is refused by a typed error that
// gives nothing away, costs little, is dialled again, and the node is there once
// it is itself again.
func TestRudeReceptions(t *testing.T) {
	eachWay(t, func(t *testing.T, w way) {
		r := w.rig(t, 2)
		other := r.socket(0)
		all := receptions()
		if w.server != nil {
			all = receptionTable // dials are dear here
		}
		for _, h := range all {
			before := allocated()
			r.peers[1].stop()
			r.lose(1)
			im := newImpostor(t, r.peers[1].addr, w, h.does)
			const dials = 2 // so the first of them has ended
			waitFor(t, "to be dialled by "+h.name, func() bool { return im.dialled.Load() >= dials })
			var err error
			r.do(func() { err = r.Fault(1) })
			im.stop()
			require.Less(t, allocated()-before, dials*w.growth(), h.name)
			require.ErrorIs(t, err, ErrNotSent, h.name)
			requireCause(t, hostile{name: h.name}, err)

			r.peers[1].start(t)
			r.up()
			r.serves(h.name)
		}
		require.Same(t, other, r.socket(0), "nobody else was closed")
	})
}
