package conn

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// legal are answers to a demand that may be unwelcome, but are answers. They
// reach the owner, in whatever pieces, and the connection goes on.
var legal = []struct {
	name    string
	answer  [demands]string
	refused int
}{
	{"granted", [demands]string{ok, counts}, 0},
	{"held", [demands]string{"$-1\r\n", "*2\r\n:0\r\n:0\r\n"}, 0},
	{"held, in RESP3", [demands]string{"_\r\n", "*2\r\n:0\r\n:0\r\n"}, 0},
	{"attributes", [demands]string{"|1\r\n+ttl\r\n:3600\r\n" + ok, "|1\r\n+a\r\n*1\r\n:1\r\n*2\r\n|1\r\n+b\r\n#t\r\n:1\r\n:0\r\n"}, 0},
	{"loading", [demands]string{"-LOADING wait\r\n", "-LOADING wait\r\n"}, 2},
	{"moved", [demands]string{"-MOVED 12539 $ELSEWHERE\r\n", "-ASK 12539 $ELSEWHERE\r\n"}, 2},
	{"cluster", [demands]string{"-CLUSTERDOWN Hash slot not served\r\n", "-CROSSSLOT Keys in request don't hash to the same slot\r\n"}, 2},
	{"no script", [demands]string{ok, "-NOSCRIPT No matching script. Please use EVAL.\r\n"}, 1},
	{"replica", [demands]string{"-READONLY no\r\n", counts}, 1},
	{"no memory", [demands]string{"-OOM no\r\n", counts}, 1},
	{"busy", [demands]string{"-BUSY wait.\r\n", "-BUSY wait.\r\n"}, 2},
	{"in bulk", [demands]string{"!21\r\nSYNTAX invalid syntax\r\n", "!0\r\n\r\n"}, 2},
	{"over two lines", [demands]string{"!12\r\nERR two\r\n+OK\r\n", counts}, 1},
	{"no words", [demands]string{"-\r\n", counts}, 1},
	{"NUL and colours", [demands]string{"-\x1b[31mERR\x1b[0m \x00\x07\x7f\xff\r\n", counts}, 1},
	{"our own secret", [demands]string{"-ERR unknown command 'SET', with args beginning with: '" + marked + "'\r\n", counts}, 1},
	{"as long as may be", [demands]string{"-" + strings.Repeat("x", 1<<10) + "\r\n", counts}, 1},
	{"without an end in sight", [demands]string{"-LATER a\x00b\r\n", "-LATER \xf0\x9f\x94\x92\r\n"}, 2},
}

// cutsOf are where to cut an answer: nowhere, at one place after the other, and
// at all of them.
func cutsOf(length int) (cuts [][]int) {
	cuts = append(cuts, nil)
	var all []int
	for at := 1; at < length; at++ {
		cuts = append(cuts, []int{at})
		all = append(all, at)
	}
	return append(cuts, all)
}

// Each legal answer, cut in two at every byte and in as many pieces as it has
// bytes, each of which the client has read before the next is sent.
func TestLegalAnswersInPieces(t *testing.T) {
	eachWay(t, func(t *testing.T, w way) {
		r := w.rig(t, 1)
		only := r.socket(0)
		for _, l := range legal {
			whole := strings.Join(l.answer[:], "")
			cuts := cutsOf(len(whole))
			if len(whole) > 64 {
				cuts = cuts[:1]
			}
			for _, cut := range cuts {
				d := r.demand()
				r.expectDemand(d)
				from := 0
				for _, to := range append(cut[:len(cut):len(cut)], len(whole)) {
					r.wires[0].send(whole[from:to])
					r.until("for a piece of "+l.name, func() bool {
						read := r.nodes[0].w - r.nodes[0].r
						for _, reply := range l.answer[:d.nodes[0].replies] {
							read += len(reply)
						}
						return read == to
					})
					from = to
				}
				r.until(l.name, func() bool { return d.settled > 0 })
				d.check(t, l.name)
				require.Equal(t, outcome{replies: demands, refused: l.refused, ended: true}, d.nodes[0], l.name)
			}
		}
		assert.Same(t, only, r.socket(0), "one connection for all")
	})
}

// A node that refuses for ever is asked again for ever: its connection stays, no
// redirection is followed, and nothing piles up.
func TestRefusalsForEver(t *testing.T) {
	const rounds = 200
	eachWay(t, func(t *testing.T, w way) {
		r := w.rig(t, 2)
		elsewhere := newPeer(t)
		socks := []sock{r.socket(0), r.socket(1)}
		for _, l := range legal {
			answer := strings.ReplaceAll(strings.Join(l.answer[:], ""), "$ELSEWHERE", elsewhere.addr)
			before := allocated()
			for range rounds / len(legal) {
				d := r.demand()
				r.expectDemand(d)
				r.wires[0].send(ok + counts)
				r.wires[1].send(answer)
				r.until(l.name, func() bool { return d.settled > 0 })
				d.check(t, l.name)
				require.Equal(t, l.refused, d.nodes[1].refused, l.name)
				require.NoError(t, d.nodes[1].err, l.name)
			}
			require.Less(t, allocated()-before, w.growth(), l.name)
		}
		assert.Equal(t, socks, []sock{r.socket(0), r.socket(1)})
		assert.Zero(t, elsewhere.dialled.Load(), "nobody was followed")
	})
}
