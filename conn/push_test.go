package conn

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/scripted"
	"github.com/redlock-go/redlock/resp"
)

// invalidation is the push of a server whose client tracks a key.
func invalidation(key string) string {
	return fmt.Sprintf(">2\r\n$10\r\ninvalidate\r\n*1\r\n$%d\r\n%s\r\n", len(key), key)
}

// pushes is what an owner hears of them: how many, and the keys of each node.
type pushes struct {
	keys  [][]string
	count int
}

func (p *pushes) on(node int, v *resp.Value) {
	p.count++
	it := v.Elements()
	it.Next()
	it.Next()
	keys := it.Value().Elements()
	for keys.Next() {
		p.keys[node] = append(p.keys[node], string(keys.Value().Bytes))
	}
}

func hears(n int) (*pushes, func(*Config)) {
	p := &pushes{keys: make([][]string, n)}
	return p, func(cfg *Config) { cfg.OnPush = p.on }
}

// Pushes come anywhere between two replies and in any pieces. Each is handed to the
// owner in its place, or dropped if it wants none.
func TestPushes(t *testing.T) {
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		heard, on := hears(2)
		for _, set := range []func(*Config){on, func(*Config) {}} {
			r := newUpFleet(t, portable, 2, set)
			stream := invalidation("a") + echoes("one") + "|1\r\n+x\r\n+y\r\n" + invalidation("b") + ">2\r\n$10\r\ninvalidate\r\n_\r\n" + echoes("two") + invalidation("")
			for cut := range len(stream) + 1 {
				l := r.send("one", "two")
				for i, w := range r.wires {
					w.Expect(string(l.Buf))
					if i == 1 {
						w.Send(echoes("one", "two"))
						continue
					}
					w.Send(stream[:cut])
					r.do(func() { r.Sweep(0) })
					w.Send(stream[cut:])
				}
				r.awaitDone(l)
				require.NoError(t, l.errOf(0))
				r.until("for what is behind the last reply", func() bool { return r.nodes[0].w == 0 })
			}
			r.works()
			if heard.count > 0 { // the first fleet has
				r.until("for the last push", func() bool { return len(heard.keys[0])%3 == 0 })
				require.Equal(t, strings.TrimSpace(strings.Repeat("a b  ", len(stream)+1)), strings.TrimSpace(strings.Join(heard.keys[0], " ")))
				require.Equal(t, 4*(len(stream)+1), heard.count)
				require.Empty(t, heard.keys[1])
				heard = new(pushes)
			}
			r.close()
			r.sent = nil
		}
	})
}

// A server that was greeted in RESP2 has no pushes, and neither has one that
// answered HELLO in RESP2.
func TestNoPushesInRESP2(t *testing.T) {
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		array := func(p *scripted.Server) {
			p.Answers = map[string]string{"HELLO": "*2\r\n+role\r\n+master\r\n"}
		}
		heard, on := hears(3)
		r := newTestFleet(t, portable, []*scripted.Server{scripted.New(t, old), scripted.New(t, array), scripted.New(t)}, on)
		r.up()
		r.do(func() {
			assert.Equal(t, []bool{false, false, true}, []bool{r.Node(0).Pushes, r.Node(1).Pushes, r.Node(2).Pushes})
		})
		for i, w := range r.wires {
			w.Send(invalidation("k"))
			if i < 2 {
				was := r.socket(i)
				r.until("for the end", func() bool { return r.nodes[i].sock != was || heard.count > 0 })
				require.Zero(t, heard.count)
				r.wires[i] = nil
			}
		}
		r.until("for the push", func() bool { return heard.count == 1 })
		require.Equal(t, []string{"k"}, heard.keys[2])
		r.up()
		r.works()
	})
}

// A push too large for the decoder, or for the buffer, ends its connection: with OPTIN a server pushes one key, or
// null. It keeps no memory.
func TestLargePushesEndTheConnection(t *testing.T) {
	many := func(n int, key string) string {
		return fmt.Sprintf(">2\r\n$10\r\ninvalidate\r\n*%d\r\n", n) + strings.Repeat(fmt.Sprintf("$%d\r\n%s\r\n", len(key), key), n)
	}
	large := map[string]string{
		"more elements than the decoder takes": many(2000, "k"),
		"a larger bulk than the decoder takes": invalidation(strings.Repeat("k", 4<<10+129)),
		"a buffer and a byte":                  many(1000, strings.Repeat("k", 200)),
		"deeper than the decoder goes":         ">1\r\n" + strings.Repeat("*1\r\n", 100_000) + ":1\r\n",
	}
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		heard, on := hears(1)
		r := newUpFleet(t, portable, 1, on)
		for name, push := range large {
			l, was := r.send("one", "two"), r.wires[0]
			was.Expect(string(l.Buf))
			before := allocated()
			r.meanwhile(func() { _, _ = was.Write([]byte(invalidation("a") + echoes("one") + push + echoes("two"))) })
			r.until("for the end", func() bool { return l.nodes[0].ended })
			assert.Less(t, allocated()-before, uint64(1<<20), name)
			require.Error(t, l.errOf(0), name)
			r.awaitDone(l)
			require.Equal(t, []string{"a"}, heard.keys[0], name)
			heard.keys[0], r.wires[0] = nil, nil
			r.up()
			r.works()
		}
	})
}

// endlessSock is a server that sends pushes faster than they are read.
type endlessSock struct {
	sock
	unit string
	read int
}

func (s *endlessSock) recv(b []byte) (int, error) {
	for i := range b {
		b[i] = s.unit[(s.read+i)%len(s.unit)]
	}
	s.read += len(b)
	if s.read > 100*maxReceive {
		return 0, fmt.Errorf("read for ever")
	}
	return len(b), nil
}

// One sweep reads no more of one node than its bound, and leaves the rest to the
// next, for every kind of reply.
func TestASweepReadsABoundedPart(t *testing.T) {
	for _, unit := range []string{invalidation("key"), echoes("one")} {
		r := newUpFleet(t, true, 1)
		l := r.send(strings.Split(strings.Repeat("one ", 50_000), " ")[:50_000]...)
		r.meanwhile(func() { r.wires[0].Expect(string(l.Buf)) })
		r.do(func() {
			n := r.nodes[0]
			s := &endlessSock{sock: n.sock, unit: unit}
			n.sock = s
			for i := range 3 {
				n.receive(0)
				require.NoError(t, n.fault)
				require.LessOrEqual(t, s.read, (i+1)*(maxReceive+readBuffer))
			}
		})
	}
}

// As many pushes as OPERATORS.md allows are no flood, and an owner that sleeps until it is woken reads all of them: the part
// that one sweep leaves wakes it again.
func TestNoPartOfAFloodIsLeft(t *testing.T) {
	const pushed = 8192
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		heard, on := hears(1)
		r := newUpFleet(t, portable, 1, on)
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			_, _ = r.wires[0].Write([]byte(strings.Repeat(invalidation("k"), pushed)))
		}()
		testkit.Within(t, testkit.Patience, "the flood", func() {
			for heard.count < pushed {
				r.do(func() { r.Arm(false) })
				r.Wait()
				r.do(func() { r.Sweep(0) })
			}
		})
		<-sent
		r.works()
	})
}

// A server that sends pushes in place of replies is silent.
func TestPushesAreNoProgress(t *testing.T) {
	heard, on := hears(1)
	r := newUpFleet(t, false, 1, on)
	l := r.send("one")
	r.wires[0].Expect(string(l.Buf))
	r.clock.Advance(defaultStallTimeout)
	r.wires[0].Send(invalidation("k"))
	r.until("for the push", func() bool { return heard.count == 1 })
	r.clock.Advance(1)
	r.do(r.Check)
	require.ErrorIs(t, l.errOf(0), ErrStalled)
	r.awaitDone(l)
	r.wires[0] = nil
	r.up()
	r.works()
}
