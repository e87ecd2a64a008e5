package conn

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/scripted"
	"github.com/redlock-go/redlock/resp"
)

// hostile is a server by what it does in place of two echoes, "one" and "two".
type hostile struct {
	name  string
	does  scripted.Steps
	taken int // replies that reach the owner; see some
	want  any // the reason of a resp.ProtocolError, an error, a func(error) bool, or nil for any error
}

const (
	// some is for servers of which the client may take any number of replies.
	some = -1

	one = "$3\r\none\r\n"
	two = "$3\r\ntwo\r\n"
)

// hostiles are one for each branch that decides on what was read, and one for
// each bound. Every frame that is malformed is package resp's business.
var hostiles = []hostile{
	{"no RESP", scripted.Steps{"HTTP/1.1 200 OK\r\n\r\n"}, 0, "unknown kind"},
	{"a bulk that is longer than announced", scripted.Steps{one + "$2\r\ntwo\r\n"}, 1, "no CRLF after payload"},
	{"a bulk too long", scripted.Steps{"$4225\r\n"}, 0, "bulk too long"},
	{"an array too large", scripted.Steps{"*1025\r\n"}, 0, "too many elements"},
	{"arrays in arrays", scripted.Steps{strings.Repeat("*1\r\n", 5)}, 0, "nested too deep"},
	{"a line too long", scripted.Steps{"+" + strings.Repeat("x", 1025)}, 0, "line too long"},
	{"a line without end", scripted.Steps{"+", scripted.FloodOf(marked, 16<<20)}, 0, "line too long"},
	{"one attribute of long texts", scripted.Steps{"|500\r\n", scripted.FloodOf("+"+strings.Repeat("x", 50)+"\r\n", 1<<20)}, 0, ErrOversized},
	{"another answer", scripted.Steps{one + ":2\r\n"}, 2, errMisfit},
	{"answers that are swapped", scripted.Steps{two + one}, 1, errMisfit},
	{"our own words", scripted.Steps{string(encode("ECHO", "one"))}, 1, errMisfit},
	{"one error too many", scripted.Steps{one + two + "-ERR " + marked + "\r\n"}, 2, ErrUnsolicited},
	{"one byte too many", scripted.Steps{one + two + "+"}, 2, ErrUnsolicited},
	{"replies without end", scripted.Steps{one + two, scripted.FloodOf(one, 16<<20)}, 2, ErrUnsolicited},
	{"a push that is malformed", scripted.Steps{one + ">2\r\n+x\r\n?\r\n"}, 1, "unknown kind"},
	{"a large push without end", scripted.Steps{one + ">2\r\n$536870912\r\n", scripted.FloodOf("x", 1<<20)}, 1, "bulk too long"},
	{"pushes without end", scripted.Steps{scripted.FloodOf(invalidation("k"), 16<<20)}, 0, errFlood},
	{"the end in mid-reply", scripted.Steps{one + two[:5], scripted.HangUp}, 1, nil},
	{"a reset between replies", scripted.Steps{one, scripted.CutOff}, some, nil},
	{"a half-close in mid-reply", scripted.Steps{one[:3], scripted.HalfClose}, 0, io.ErrUnexpectedEOF},
	{"silence inside a bulk", scripted.Steps{one + two[:5]}, 1, ErrStalled},
}

// tlsHostiles break what is below RESP.
var tlsHostiles = []hostile{
	{"a reply in the clear", scripted.Steps{one, scripted.Raw(two)}, 1, func(err error) bool {
		var header tls.RecordHeaderError
		return errors.As(err, &header)
	}},
	{"a record of noise", scripted.Steps{scripted.Raw("\x17\x03\x03\x00\x20" + strings.Repeat("x", 32))}, 0, func(err error) bool {
		var refused *net.OpError
		return errors.As(err, &refused) && strings.Contains(err.Error(), "bad record MAC")
	}},
}

// growth bounds what one server may make a client allocate, its own handshake and
// the return of its better self included. Servers encrypt in the same process,
// and the race detector empties the pool that they do it from.
func growth(secure bool) uint64 {
	if secure && testkit.Race {
		return 4 << 20
	}
	return 1 << 20
}

// A server that does what it should not ends its own connection by a typed error,
// costs little memory, hurts no other node, and is taken back when it behaves. One
// fleet goes through all of it.
func TestHostileServers(t *testing.T) {
	run := func(t *testing.T, portable, secure bool) {
		all := hostiles
		var server, client *tls.Config
		if secure {
			all = append(all[:len(all):len(all)], tlsHostiles...)
			server, client = testkit.NewIdentity(t)
		}
		ps := scripted.NewN(t, 3, func(p *scripted.Server) { p.TLS = server })
		r := newTestFleet(t, portable, ps, func(cfg *Config) {
			cfg.TLS = client
			for i := range cfg.Addresses {
				cfg.Addresses[i].login = func() (string, string) { return "", marked }
			}
		})
		r.up()
		others := []sock{r.socket(0), r.socket(2)}
		for _, h := range all {
			before := allocated()
			r.suffer(h)
			r.up()
			require.Less(t, allocated()-before, growth(secure), h.name)
			r.works()
		}
		assert.Equal(t, others, []sock{r.socket(0), r.socket(2)}, "no other node was closed")
	}
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) { run(t, portable, false) })
	t.Run("tls", func(t *testing.T) { run(t, true, true) })
}

// suffer asks three nodes for two echoes, of which number 1 is hostile.
func (r *testFleet) suffer(h hostile) {
	t := r.t
	gone := r.socket(1)
	l := newLedger(t, []string{"one", "two"})
	l.lenient = true
	r.post(l)
	for _, w := range r.wires {
		w.Expect(string(l.Buf))
	}
	bad := r.wires[1]
	performed := make(chan struct{})
	go func() {
		defer close(performed)
		bad.Play(h.does)
	}()
	for _, i := range []int{0, 2} {
		r.wires[i].Send(one + two)
		r.until(h.name+": an honest answer", func() bool { return l.nodes[i].ended })
		require.NoError(t, l.errOf(i), h.name)
	}
	if h.want == ErrStalled { // but not before all was sent and read
		<-performed
		r.until(h.name+": what comes before", func() bool { return l.nodes[1].replies == h.taken })
	}
	var cause error
	r.until(h.name, func() bool {
		if h.want == ErrStalled { // silence, on a clock that stands still
			r.clock.Advance(defaultStallTimeout / 4)
			r.Check()
		}
		if f := r.Fault(1); f != nil && cause == nil {
			cause = f
		}
		return l.doneCalls > 0 && r.nodes[1].sock != gone
	})
	bad.AwaitEnd(h.name)
	_ = bad.Close()
	<-performed
	r.wires[1] = nil
	got := l.nodes[1]
	if h.taken != some {
		require.Equal(t, h.taken, got.replies, h.name)
	}
	if got.replies < l.Replies {
		requireCause(t, h, got.err)
		require.NotErrorIs(t, got.err, ErrNotSent, h.name)
	} else {
		require.NoError(t, got.err, h.name)
	}
	if cause != nil { // seen before it was dialed again
		requireCause(t, h, cause)
		require.ErrorIs(t, cause, ErrNotSent, h.name)
	}
}

// requireCause wants an error that code can recognize, and that people can read
// without harm: one short line, no control characters, no secret.
func requireCause(t *testing.T, h hostile, err error) {
	t.Helper()
	var of *Error
	require.ErrorAs(t, err, &of, h.name)
	switch want := h.want.(type) {
	case nil:
	case string:
		var protocol *resp.ProtocolError
		require.ErrorAs(t, err, &protocol, h.name)
		require.Equal(t, want, protocol.Reason, h.name)
	case error:
		require.ErrorIs(t, err, want, h.name)
	case func(error) bool:
		require.True(t, want(err), "%s: %v", h.name, err)
	default:
		require.FailNow(t, "no such expectation", "%T", want)
	}
	require.Less(t, len(err.Error()), 400, h.name)
	require.NotContains(t, err.Error(), marked, h.name)
	bad := strings.IndexFunc(err.Error(), func(r rune) bool { return r < ' ' || r > '~' })
	require.Negative(t, bad, "%s: %q", h.name, err)
}

// allocated is how many bytes this process has ever allocated.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}
