package fleet

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// slowQueue is a simple model of inflight: it remembers every
// byte and every reply that is still to come.
type slowQueue struct {
	batches []*Batch
	bytes   []int // by batch, not yet handed to the kernel
	replies []int // by batch, still owed
}

func (s *slowQueue) firstUnsent() int {
	for i, n := range s.bytes {
		if n > 0 {
			return i
		}
	}
	return len(s.bytes)
}

func TestInflightAgainstAModel(t *testing.T) {
	for seed := range uint64(8) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var q inflight
		var s slowQueue
		for range 400 {
			unsent := s.firstUnsent()
			asked := len(s.batches) > 0 && s.bytes[0] < len(s.batches[0].Buf)
			switch rnd.IntN(3) {
			case 0:
				b := &Batch{Buf: make([]byte, 1+rnd.IntN(5)), Replies: 1 + rnd.IntN(3)}
				q.push(b)
				s.batches = append(s.batches, b)
				s.bytes = append(s.bytes, len(b.Buf))
				s.replies = append(s.replies, b.Replies)
			case 1:
				if unsent < len(s.bytes) {
					n := rnd.IntN(s.bytes[unsent] + 1)
					q.sent(n)
					s.bytes[unsent] -= n
				}
			case 2:
				if asked {
					i, last := q.replied(1)
					require.Equal(t, s.batches[0].Replies-s.replies[0], i)
					s.replies[0]--
					require.Equal(t, s.replies[0] == 0, last)
					if last {
						s.batches, s.bytes, s.replies = s.batches[1:], s.bytes[1:], s.replies[1:]
					}
				}
			}
			s.compare(t, &q)
		}
	}
}

func (s *slowQueue) compare(t *testing.T, q *inflight) {
	t.Helper()
	owed := 0
	for _, n := range s.replies {
		owed += n
	}
	require.Equal(t, owed, q.replies)
	require.Equal(t, len(s.batches), q.len)
	if unsent := s.firstUnsent(); unsent < len(s.batches) {
		require.Len(t, q.backlog(), s.bytes[unsent])
	} else {
		require.Nil(t, q.backlog())
	}
	if len(s.batches) > 0 && s.bytes[0] < len(s.batches[0].Buf) {
		require.Same(t, s.batches[0], q.oldest())
	} else {
		require.Nil(t, q.oldest())
	}
	for i, b := range s.batches {
		require.Same(t, b, q.at(i))
	}
	for i := q.len; i < len(q.ring); i++ {
		require.Nil(t, q.at(i), "what has gone is not kept from the collector")
	}
}
