package conn

import (
	"bytes"
	"math/rand/v2"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlock-go/redlock/resp"
)

// saboteur is a server that answers ECHO with what was to be echoed, in order and
// each once, and lets everything else go wrong that can.
type saboteur struct {
	t     *testing.T
	life  int // replies of a connection, on average, until it comes to a bad end
	conns atomic.Uint64
	seed  uint64

	writes, pieces, delays, disorders atomic.Int64
	deeds                             [len(ends)]atomic.Int64
}

// ends are what a connection comes to, somewhere in a reply.
var ends = [...]verb{cut, hangUp, half, mute, "garbage"}

func (s *saboteur) serve(nc net.Conn) {
	rnd := rand.New(rand.NewPCG(s.seed, s.conns.Add(1)))
	left := 1 + rnd.IntN(2*s.life)
	bite := 64 << rnd.IntN(11) // what it reads at once
	in, out := make([]byte, 0, 64<<10), make([]byte, 0, 64<<10)
	var d resp.Decoder
	var v resp.Value
	var last []byte
	if rnd.IntN(4) == 0 {
		if tcp, ok := nc.(*net.TCPConn); ok {
			_ = tcp.SetReadBuffer(4 << 10) // so that writes to it are cut short; a restart may have closed it
		}
	}
	for {
		k, err := nc.Read(in[len(in):min(len(in)+bite, cap(in))])
		if err != nil {
			return
		}
		in = in[:len(in)+k]
		at := 0
		for left > 0 {
			n, err := d.Decode(in[at:], &v)
			if err != nil {
				break
			}
			at += n
			it := v.Elements()
			it.Next()
			it.Next()
			text := it.Value().Bytes
			if number, _, _ := bytes.Cut(text, space); len(number) < len(last) || len(number) == len(last) && bytes.Compare(number, last) <= 0 {
				s.disorders.Add(1)
			} else {
				last = append(last[:0], number...)
			}
			before := len(out)
			if rnd.IntN(50) == 0 {
				out = resp.AppendError(out, "ERR "+string(text[:min(len(text), 100)]))
			} else {
				out = resp.AppendBulk(out, text)
			}
			if left--; left == 0 {
				out = out[:before+rnd.IntN(len(out)-before+1)]
			}
		}
		in = in[:copy(in, in[at:])]
		if !s.write(nc, rnd, out) {
			return
		}
		out = out[:0]
		if left == 0 {
			s.end(nc, rnd)
			return
		}
	}
}

var space = []byte(" ")

// write sends out, in one piece or in several, now or a little later.
func (s *saboteur) write(nc net.Conn, rnd *rand.Rand, out []byte) bool {
	s.writes.Add(1)
	if rnd.IntN(200) == 0 {
		s.delays.Add(1)
		time.Sleep(time.Duration(rnd.IntN(int(time.Millisecond)))) // it is what it says
	}
	for len(out) > 0 {
		n := len(out)
		if rnd.IntN(3) == 0 {
			s.pieces.Add(1)
			n = 1 + rnd.IntN(n)
		}
		if _, err := nc.Write(out[:n]); err != nil {
			return false
		}
		out = out[n:]
	}
	return true
}

func (s *saboteur) end(nc net.Conn, rnd *rand.Rand) {
	which := rnd.IntN(len(ends))
	s.deeds[which].Add(1)
	w := &wire{t: s.t, Conn: nc}
	if ends[which] == "garbage" {
		w.play(steps{unlined.Replace(malformed[rnd.IntN(len(malformed))].frame)})
		return // and says no more; it is cut off or stalls
	}
	w.play(steps{ends[which]})
}

// unlined keeps garbage from making the half reply before it whole: without a
// line break nothing is.
var unlined = strings.NewReplacer("\r", "?", "\n", "?")
