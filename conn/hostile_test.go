package conn

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/resp"
)

// malformed are frames that no server sends, or none that we would wait for.
var malformed = []string{
	"\r\n", "\n", "x", "OK\r\n", " +OK\r\n", "\x00", "\xff\xfe", "HTTP/1.1 200 OK\r\n\r\n", "\x16\x03\x01\x02\x00",
	"+OK\n", "+OK\rx", "+O\nK\r\n", "+\r\r\n", "-ERR\n\r\n", ":1\n",
	"+" + strings.Repeat("x", 2000), "-" + strings.Repeat("x", 2000) + "\r\n",
	":\r\n", ":+1\r\n", ":-0\r\n", ":01\r\n", ":1.0\r\n", ": 1\r\n", ":1 \r\n", ":0x1\r\n", ":9223372036854775808\r\n",
	":" + strings.Repeat("9", 40),
	"$\r\n", "$-2\r\n", "$-1x\r\n", "$+2\r\nOK\r\n", "$02\r\nOK\r\n", "$a\r\n", "$1e3\r\n", "$4097\r\n", "$2147483648\r\n",
	"$9223372036854775807\r\n", "$99999999999999999999\r\n", "$2\r\nOKx\n", "$2\r\nOK\n\n", "$1\r\nOK\r\n", "$?\r\n",
	"*-2\r\n", "*\r\n", "*1025\r\n", "*2147483648\r\n", "*1000000000000\r\n", "*1\r\n\r\n", "*?\r\n",
	strings.Repeat("*1\r\n", 100), strings.Repeat("*2\r\n", 5), "*600\r\n*600\r\n",
	"%-1\r\n", "%1000\r\n", "~-2\r\n", "~1025\r\n", ">-1\r\n", "*1\r\n>1\r\n+x\r\n", "|600\r\n", "|1\r\n|1\r\n|1\r\n|1\r\n|1\r\n",
	"_x\r\n", "#1\r\n", "#true\r\n", ",\r\n", ",1e\r\n", ",0x1\r\n", "(\r\n", "(-\r\n", "!-2\r\n", "=2\r\nOK\r\n", "=6\r\ntxtxOK\r\n",
	";4\r\n", ".\r\n", "$5\r\n*1\r\n\r\nx",
}

// misfits are well-formed answers to something else.
var misfits = []string{
	"+OK\r\n", "-ERR no\r\n", ":1\r\n", "$-1\r\n", "*-1\r\n", "*0\r\n", "$0\r\n\r\n", "_\r\n", "#t\r\n", ",1\r\n", "(1\r\n",
	"*1\r\n$5\r\nfirst\r\n", "~0\r\n", "%0\r\n", "!3\r\nERR\r\n", "=9\r\ntxt:first\r\n", "|1\r\n+a\r\n+b\r\n:1\r\n",
	"$6\r\nsecond\r\n",
}

// hostility is what a server does instead of answering "first" and "second".
type hostility struct {
	name  string
	do    steps
	taken int   // replies that count
	want  error // nil for any
}

func hostilities() (hs []hostility) {
	first, both := echoes("first"), echoes("first", "second")
	for _, frame := range malformed {
		protocol := hostility{"malformed " + frame[:min(len(frame), 20)], steps{frame}, 0, errProtocol}
		hs = append(hs, protocol)
		protocol.name, protocol.do, protocol.taken = "then "+protocol.name, steps{first + frame}, 1
		hs = append(hs, protocol)
	}
	for _, frame := range misfits {
		hs = append(hs, hostility{"misfit " + frame, steps{frame}, 1, errMisfit})
	}
	large := "*5\r\n" + strings.Repeat("$4000\r\n"+strings.Repeat("x", 4000)+"\r\n", 5)
	return append(hs,
		hostility{"too large", steps{large}, 0, ErrOversized},
		hostility{"too large, in attributes", steps{"|500\r\n" + strings.Repeat("+"+strings.Repeat("x", 50)+"\r\n", 1000)}, 0, ErrOversized},
		hostility{"one reply too many", steps{both + "+OK\r\n"}, 2, ErrUnsolicited},
		hostility{"one byte too many", steps{both + "+"}, 2, ErrUnsolicited},
		hostility{"replies without end", steps{both + strings.Repeat(first, 1000)}, 2, ErrUnsolicited},
		hostility{"swapped", steps{echoes("second", "first")}, 1, errMisfit},
		hostility{"end", steps{hangUp}, 0, nil},
		hostility{"reset", steps{cut}, 0, nil},
		hostility{"half-close", steps{half}, 0, io.ErrUnexpectedEOF},
		hostility{"half-close in mid-reply", steps{first[:len(first)-3], half}, 0, io.ErrUnexpectedEOF},
		hostility{"half-close between replies", steps{first, half}, 1, io.ErrUnexpectedEOF},
		hostility{"half-close behind the last", steps{both, half}, 2, io.ErrUnexpectedEOF},
		hostility{"end between replies", steps{first, hangUp}, 1, nil},
		hostility{"end behind the last", steps{both, hangUp}, 2, nil},
		hostility{"end in mid-reply", steps{both[:len(both)-1], hangUp}, 1, nil},
	)
}

// errProtocol stands for any *resp.ProtocolError.
var errProtocol = &resp.ProtocolError{}

func requireCause(t *testing.T, err, want error) {
	t.Helper()
	require.Error(t, err)
	switch want {
	case nil:
	case errProtocol:
		var protocol *resp.ProtocolError
		require.ErrorAs(t, err, &protocol)
	default:
		require.ErrorIs(t, err, want)
	}
}

// Whatever a server does, it ends its own connection, those of others live on,
// and it may try again. One fleet goes through all of it.
func TestHostileReplies(t *testing.T) {
	require.Greater(t, len(malformed), 60)
	eachPath(t, func(t *testing.T, portable bool) {
		r := newUpRig(t, portable, 3)
		others := []sock{r.socket(0), r.socket(2)}
		for _, h := range hostilities() {
			l := newLedger(t, []string{"first", "second"})
			l.lenient = true
			r.post(l)
			for _, w := range r.wires {
				w.expect(string(l.Buf))
			}
			r.wires[1].play(h.do)
			r.wires[0].send(echoes(l.tags...))
			r.wires[2].send(echoes(l.tags...))
			var cause error
			gone := r.socket(1)
			r.until(h.name, func() bool {
				if f := r.Fault(1); f != nil && cause == nil {
					cause = f
				}
				return l.settled > 0 && r.nodes[1].sock != gone
			})
			require.NoError(t, l.errOf(0), h.name)
			require.NoError(t, l.errOf(2), h.name)
			require.Equal(t, h.taken, l.nodes[1].replies, h.name)
			if h.taken < 2 {
				requireCause(t, l.errOf(1), h.want)
				require.NotErrorIs(t, l.errOf(1), ErrNotSent)
			} else {
				require.NoError(t, l.errOf(1))
			}
			if cause != nil { // seen before it was dialled again
				assert.ErrorIs(t, cause, ErrNotSent)
			}
			_ = r.wires[1].Close()
			r.wires[1] = nil
			r.up()
			r.works()
		}
		assert.Equal(t, others, []sock{r.socket(0), r.socket(2)}, "nobody else was closed")
	})
}

// What comes before anything was asked is no reply to what is asked next.
func TestRepliesBeforeTheirRequest(t *testing.T) {
	for name, early := range map[string]string{
		"a reply": echoes("x"), "a byte": "$", "an error": "-ERR max number of clients reached\r\n", "nothing": "",
	} {
		t.Run(name, func(t *testing.T) {
			eachPath(t, func(t *testing.T, portable bool) {
				r := newUpRig(t, portable, 2)
				if r.wires[0].send(early); early == "" {
					r.wires[0].half()
				}
				r.lose(0)
				r.up()
				r.works()
			})
		})
	}
}

// A reply to a command that the kernel has not taken yet in whole.
func TestAnswersToHalfARequest(t *testing.T) {
	eachPath(t, func(t *testing.T, portable bool) {
		r := newUpRig(t, portable, 2)
		l := r.sendLarge(16<<20, "large")
		r.do(func() { require.Positive(t, r.waiting(0)) })
		behind := r.send("behind")
		w := r.wires[0]
		w.send(echoes("large"))
		r.lose(0)
		assert.Equal(t, 1, l.nodes[0].replies)
		assert.NoError(t, l.errOf(0), "it was a reply")
		assert.ErrorIs(t, behind.errOf(0), ErrUnsolicited)
		assert.ErrorIs(t, behind.errOf(0), ErrNotSent)
		r.up()
	})
}

// Silence ends a connection after the stall bound, but only where something is
// owed, and every byte begins it anew.
func TestSilence(t *testing.T) {
	const bound = DefaultStallTimeout
	eachPath(t, func(t *testing.T, portable bool) {
		r := newUpRig(t, portable, 2)
		idle := r.socket(0)
		r.clock.Advance(10 * bound)
		r.do(r.Check)
		assert.Same(t, idle, r.socket(0), "silent, as it should be")

		l := r.send("first", "second")
		r.clock.Advance(bound)
		r.do(r.Check)
		assert.Zero(t, l.nodes[0].replies)
		assert.Same(t, idle, r.socket(0), "not longer than the bound")
		for _, w := range r.wires {
			w.expect(string(l.Buf))
		}
		for i, piece := range []string{echoes("first"), "$", "6"} {
			r.wires[0].send(piece)
			r.until("for the piece", func() bool { return r.consumed(0, l) == len(echoes("first"))+i })
			r.wires[1].send(piece)
			r.until("for the piece", func() bool { return r.consumed(1, l) == len(echoes("first"))+i })
			r.clock.Advance(bound)
			r.do(r.Check)
			assert.Same(t, idle, r.socket(0), "it has sent something")
		}
		r.wires[1].send(echoes("second")[2:])
		r.until("for node 1 to end", func() bool { return l.nodes[1].ended })
		r.clock.Advance(1)
		r.do(r.Check)
		assert.ErrorIs(t, l.errOf(0), ErrStalled)
		assert.NotErrorIs(t, l.errOf(0), ErrNotSent)
		assert.NoError(t, l.errOf(1), "this one owed nothing")
		r.wires[0] = nil
		r.up()
		r.works()
	})
}

// What a queue may owe is bounded; the batch that is too much, and all before
// it, fail, and nothing that was not sent yet is sent.
func TestMaxInFlight(t *testing.T) {
	eachPath(t, func(t *testing.T, portable bool) {
		r := newUpRig(t, portable, 2, func(cfg *Config) { cfg.MaxInFlight = 5 })
		fits := r.send(tagsOf(5)...)
		assert.Zero(t, fits.settled)
		r.wires[0].expect(string(fits.Buf))
		r.wires[1].expect(string(fits.Buf))
		r.wires[1].send(echoes(fits.tags...))
		r.until("for node 1 to have room", func() bool { return fits.nodes[1].ended })
		full := r.send("one more")
		assert.ErrorIs(t, fits.errOf(0), ErrFull)
		assert.NotErrorIs(t, fits.errOf(0), ErrNotSent)
		assert.ErrorIs(t, full.errOf(0), ErrFull)
		assert.ErrorIs(t, full.errOf(0), ErrNotSent)
		n, err := r.wires[0].rest()
		assert.Error(t, err, "a reset")
		assert.Zero(t, n)
		r.wires[1].expect(string(full.Buf))
		r.wires[1].send(echoes(full.tags...))
		r.settle(fits, full)
		assert.NoError(t, full.errOf(1))
		r.wires[0] = nil
		r.up()
		r.works()
	})
}

// The same by SendTo, which does not close anything by itself: the next sweep
// does, though nothing arrives.
func TestMaxInFlightBySendTo(t *testing.T) {
	eachPath(t, func(t *testing.T, portable bool) {
		r := newUpRig(t, portable, 2, func(cfg *Config) { cfg.MaxInFlight = 1 })
		one, two := r.sendTo(0, "one"), r.sendTo(0, "two")
		r.settle(one, two)
		assert.ErrorIs(t, one.errOf(0), ErrFull)
		assert.ErrorIs(t, two.errOf(0), ErrFull)
	})
}

// A server that has answered and gone says both at once. Neither may be lost,
// not even where nobody asks for a second report.
func TestTheEndIsNotLostBehindTheLastBytes(t *testing.T) {
	eachPath(t, func(t *testing.T, portable bool) {
		for range 20 {
			r := newUpRig(t, portable, 1)
			l := r.send("first", "second")
			r.wires[0].expect(string(l.Buf))
			r.wires[0].send(echoes("first"))
			r.wires[0].half()
			if p, ok := r.socket(0).(*pump); ok {
				waitFor(t, "for the end", func() bool {
					p.mu.Lock()
					defer p.mu.Unlock()
					return p.err != nil
				})
			}
			r.settle(l)
			assert.Equal(t, 1, l.nodes[0].replies)
			assert.ErrorIs(t, l.errOf(0), io.ErrUnexpectedEOF)
		}
	})
}
