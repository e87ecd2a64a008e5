package conn

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/scripted"
	"github.com/redlock-go/redlock/resp"
)

// faultyServer is a server that answers ECHO, in pieces, writes down what it saw,
// and sooner or later ends its connection in one way or another.
type faultyServer struct {
	mu      sync.Mutex
	rnd     *rand.Rand
	healthy bool
	saw     map[string]int
	order   []string // of arrival
}

// garbage is no RESP, after any bytes: it has no line break, so
// that it cannot make a half reply whole.
var garbage = []string{"x", "\x00", "\xff\xfe", "HTTP/1.1 200 OK", ":9223372036854775808", "$-2", "*1025"}

// plan is after how many bytes of reply which fault happens.
func (f *faultyServer) plan() (bytes int, last scripted.Steps) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.healthy {
		return 1 << 30, nil
	}
	ends := []scripted.Steps{{scripted.HangUp}, {scripted.CutOff}, {scripted.HalfClose}, {scripted.Mute}, {garbage[f.rnd.IntN(len(garbage))]}}
	return f.rnd.IntN(500), ends[f.rnd.IntN(len(ends))]
}

func (f *faultyServer) serve(nc net.Conn) {
	left, last := f.plan()
	w := &scripted.Conn{Conn: nc}
	var in []byte
	buf := make([]byte, 1+left%5000)
	for {
		k, err := nc.Read(buf)
		if err != nil {
			return
		}
		in = append(in, buf[:k]...)
		var out []byte
		f.mu.Lock()
		for {
			args, rest := scripted.CutCommand(in)
			if args == nil {
				break
			}
			in = rest
			f.saw[args[1]]++
			f.order = append(f.order, args[1])
			out = resp.AppendBulkString(out, args[1])
		}
		piece := len(out)
		if f.rnd.IntN(3) == 0 {
			piece = f.rnd.IntN(len(out) + 1)
		}
		f.mu.Unlock()
		left -= len(out)
		if left >= 0 {
			w.Play(scripted.Steps{string(out[:piece]), string(out[piece:])})
			continue
		}
		w.Play(append(scripted.Steps{string(out[:len(out)+left])}, last...))
		return // and sends no more; it is cut off or stalls
	}
}

// TestChaos sends to servers that misbehave at random and holds the fleet to its word throughout: the ledgers object to any
// reply that is misplaced, delivered twice or never, and the servers report whether "not sent" was true. Some owners refuse
// replies, and send more from within Reply and Fail, to any node: to one that is being read, or that is dead by now.
func TestChaos(t *testing.T) {
	batches := 400
	switch {
	case testkit.Long():
		batches = 75_000
	case testkit.Race || testing.Short():
		batches = 200
	}
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		rnd := rand.New(rand.NewPCG(3, 4))
		servers := make([]*faultyServer, 3)
		ps := make([]*scripted.Server, len(servers))
		for i := range servers {
			v := &faultyServer{rnd: rand.New(rand.NewPCG(uint64(i), 5)), saw: make(map[string]int)}
			v.healthy = i == 0
			servers[i] = v
			ps[i] = scripted.New(t, func(p *scripted.Server) { p.Serve = v.serve })
		}
		r := newTestFleet(t, portable, ps)
		r.allUp()
		var all, flying []*ledger
		var compose func(within bool) *ledger
		compose = func(within bool) *ledger {
			tags, number := make([]string, 1+rnd.IntN(5)), 2*len(all)
			if within {
				number++
			}
			for i := range tags {
				tags[i] = fmt.Sprintf("%d.%d", number, i)
			}
			l := newLedger(t, tags)
			l.lenient = true
			all, flying = append(all, l), append(flying, l)
			if within || rnd.IntN(8) > 0 {
				return l
			}
			more := func() {
				for range 1 + rnd.IntN(2*minRing) {
					r.giveTo(rnd.IntN(3), compose(true))
				}
			}
			l.onReply = func(node, _ int) error {
				if rnd.IntN(4) == 0 {
					more()
				}
				if node > 0 && rnd.IntN(32) == 0 {
					return errMisfit
				}
				return nil
			}
			l.onFail = func(int, int, error) { more() }
			return l
		}
		for range batches {
			r.do(func() {
				if l := compose(false); rnd.IntN(3) == 0 {
					r.giveTo(rnd.IntN(3), l)
				} else {
					r.give(l)
				}
			})
			if rnd.IntN(100) == 0 {
				r.allUp()
			}
			if rnd.IntN(8) == 0 {
				r.until("for the queue to shrink", func() bool {
					r.clock.Advance(defaultStallTimeout / 100)
					r.Check()
					flying = slices.DeleteFunc(flying, func(l *ledger) bool { return l.doneCalls > 0 })
					return len(flying) < 10
				})
			}
		}
		for _, v := range servers {
			v.mu.Lock()
			v.healthy = true
			v.mu.Unlock()
		}
		r.until("for the rest", func() bool {
			r.clock.Advance(defaultStallTimeout / 100)
			r.Check()
			return !slices.ContainsFunc(all, func(l *ledger) bool { return l.doneCalls == 0 })
		})
		r.do(func() {
			for _, n := range r.nodes {
				for _, b := range n.owed.ring {
					require.Nil(t, b, "what has gone is not kept from the collector")
				}
			}
			r.Close()
		})
		r.Drain()
		for _, p := range ps {
			p.Stop()
			p.Running.Wait()
		}
		var notSent, lost, answered int
		for _, l := range all {
			for node, a := range l.nodes {
				for i, tag := range l.tags {
					seen := servers[node].saw[tag]
					require.LessOrEqual(t, seen, 1, "sent twice")
					switch {
					case i < a.replies:
						answered++
						require.Equal(t, 1, seen, "answered")
					case a.err == nil:
						require.Zero(t, seen, "sent to another node only")
					case errors.Is(a.err, ErrNotSent):
						notSent++
						require.Zero(t, seen, "%q: %v", tag, a.err)
					default:
						lost++
					}
				}
			}
		}
		t.Logf("%d answered, %d not sent, %d lost, dialed %d and %d times", answered, notSent, lost, ps[1].Dialled.Load(), ps[2].Dialled.Load())
		assert.Positive(t, notSent)
		assert.Positive(t, lost)
		for _, v := range servers {
			require.True(t, inOrder(v.order), "in the order in which they were sent")
		}
	})
}

// inOrder reports whether tags "batch.index" ascend: those with an even number, and those with an odd one. What is sent from
// within Fail may be for a node that the batch itself has not come to.
func inOrder(tags []string) bool {
	last := [2][2]int{{-1}, {-1}}
	for _, tag := range tags {
		var now [2]int
		if _, err := fmt.Sscanf(tag, "%d.%d", &now[0], &now[1]); err != nil {
			return false
		}
		if before := &last[now[0]%2]; slices.Compare(before[:], now[:]) >= 0 {
			return false
		}
		last[now[0]%2] = now
	}
	return true
}
