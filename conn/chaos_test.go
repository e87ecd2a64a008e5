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

	"github.com/redlock-go/redlock/resp"
)

// vandal is a server that answers ECHO, writes down what it saw, and sooner or
// later does something awful.
type vandal struct {
	mu    sync.Mutex
	rnd   *rand.Rand
	tame  bool
	saw   map[string]int
	after []string // in the order of arrival
}

// mood is after how many bytes of reply what is done.
func (v *vandal) mood() (bytes int, deed verb, garbage string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.tame {
		return 1 << 30, mute, ""
	}
	deeds := []verb{hangUp, cut, half, mute, "garbage"}
	deed = deeds[v.rnd.IntN(len(deeds))]
	return v.rnd.IntN(500), deed, malformed[v.rnd.IntN(len(malformed))].frame
}

func (v *vandal) serve(nc net.Conn) {
	left, deed, garbage := v.mood()
	var in []byte
	buf := make([]byte, 1+left%5000)
	for {
		k, err := nc.Read(buf)
		if err != nil {
			return
		}
		in = append(in, buf[:k]...)
		var out []byte
		v.mu.Lock()
		for {
			args, rest := cutCommand(in)
			if args == nil {
				break
			}
			in = rest
			v.saw[args[1]]++
			v.after = append(v.after, args[1])
			out = resp.AppendBulkString(out, args[1])
		}
		v.mu.Unlock()
		if left -= len(out); left >= 0 {
			_, _ = nc.Write(out)
			continue
		}
		out = out[:len(out)+left]
		w := &wire{Conn: nc}
		if deed == "garbage" {
			w.play(steps{string(out), garbage})
			return // and says no more; it is cut off or stalls
		}
		w.play(steps{string(out), deed})
		return
	}
}

// TestChaos sends to servers that misbehave at random and holds the fleet to
// its word throughout: the ledgers object to any reply that is misplaced, told
// twice or never, and the servers tell whether "not sent" was true.
func TestChaos(t *testing.T) {
	batches := 1500
	if raceEnabled || testing.Short() {
		batches = 300
	}
	eachPath(t, func(t *testing.T, portable bool) {
		rnd := rand.New(rand.NewPCG(3, 4))
		vandals := make([]*vandal, 3)
		ps := make([]*peer, len(vandals))
		for i := range vandals {
			v := &vandal{rnd: rand.New(rand.NewPCG(uint64(i), 5)), saw: make(map[string]int)}
			v.tame = i == 0
			vandals[i] = v
			ps[i] = newPeer(t, func(p *peer) { p.serve = v.serve })
		}
		r := newRig(t, portable, ps)
		r.allUp()
		var all []*ledger
		compose := func(n int) *ledger {
			tags := make([]string, 1+rnd.IntN(5))
			for i := range tags {
				tags[i] = fmt.Sprintf("%d.%d", n, i)
			}
			l := newLedger(t, tags)
			l.lenient = true
			all = append(all, l)
			return l
		}
		misses := 0 // of node 0, which did nothing wrong
		for n := range batches {
			l := compose(n)
			if rnd.IntN(3) == 0 {
				r.do(func() { r.giveTo(rnd.IntN(3), l) })
			} else {
				r.post(l)
			}
			if rnd.IntN(100) == 0 {
				r.allUp()
			}
			if rnd.IntN(8) == 0 {
				open := func() (n int) {
					for _, l := range all {
						if l.settled == 0 {
							n++
						}
					}
					return n
				}
				r.until("for the queue to shrink", func() bool {
					r.clock.Advance(DefaultStallTimeout / 100)
					r.Check()
					return open() < 10
				})
			}
		}
		for _, v := range vandals {
			v.mu.Lock()
			v.tame = true
			v.mu.Unlock()
		}
		for _, l := range all {
			r.until("for the rest", func() bool {
				r.clock.Advance(DefaultStallTimeout / 100)
				r.Check()
				return l.settled > 0
			})
			if l.errOf(0) != nil {
				misses++
			}
		}
		r.do(r.Close)
		r.Drain()
		for _, p := range ps {
			p.stop()
			p.running.Wait()
		}
		var notSent, lost, answered int
		for _, l := range all {
			for node, a := range l.nodes {
				for i, tag := range l.tags {
					seen := vandals[node].saw[tag]
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
		t.Logf("%d answered, %d not sent, %d lost, node 0 missed %d, dialled %d and %d times",
			answered, notSent, lost, misses, ps[1].dialled.Load(), ps[2].dialled.Load())
		assert.Positive(t, notSent)
		assert.Positive(t, lost)
		for _, v := range vandals {
			require.True(t, inOrder(v.after), "in the order in which they were sent")
		}
	})
}

// inOrder says whether tags "batch.index" ascend.
func inOrder(tags []string) bool {
	last := [2]int{-1, 0}
	for _, tag := range tags {
		var now [2]int
		if _, err := fmt.Sscanf(tag, "%d.%d", &now[0], &now[1]); err != nil {
			return false
		}
		if slices.Compare(last[:], now[:]) >= 0 {
			return false
		}
		last = now
	}
	return true
}
