package conn

import "bytes"

// inflight is the bounded queue of the unanswered batches of one connection, oldest first. A batch keeps its place
// when its caller has gone, since replies are assigned to batches by their order.
//
// The kernel has taken all bytes of the batches before unsent, counted from the
// oldest, and offset bytes of the batch at unsent.
type inflight struct {
	ring    []*Batch // power of two, so that an index wraps with a mask
	head    int
	len     int
	replies int // owed, over all batches
	bytes   int // of all batches
	next    int // replies read of the oldest batch
	usual   int // bytes of Usual read of the oldest batch; less than 0: it is answered otherwise
	unsent  int
	offset  int
	doubted int  // of the oldest batches: their replies do not count
	failed  bool // the oldest is doubted, and its owner knows
}

const minRing = 16

func (q *inflight) at(i int) *Batch { return q.ring[(q.head+i)&(len(q.ring)-1)] }

// push appends a batch, with nothing of it at the kernel yet. The caller enforces the bound; the ring grows and does
// not shrink.
func (q *inflight) push(b *Batch) {
	if q.len == len(q.ring) {
		grown := make([]*Batch, max(minRing, 2*len(q.ring)))
		for i := range q.len {
			grown[i] = q.at(i)
		}
		q.ring, q.head = grown, 0
	}
	q.ring[(q.head+q.len)&(len(q.ring)-1)] = b
	q.len++
	q.replies += b.Replies
	q.bytes += len(b.Buf)
}

// oldest is the batch of the next reply, or nil.
func (q *inflight) oldest() *Batch {
	if q.len == 0 || q.unsent == 0 && q.offset == 0 {
		return nil // no reply is owed
	}
	return q.at(0)
}

// replied counts n replies of the oldest batch, from i on; last reports that they were its last.
func (q *inflight) replied(n int) (i int, last bool) {
	i = q.next
	q.next += n
	q.replies -= n
	if q.next < q.at(0).Replies {
		return i, false
	}
	q.pop()
	return i, true
}

func (q *inflight) pop() *Batch {
	b := q.at(0)
	q.bytes -= len(b.Buf)
	q.ring[q.head] = nil
	q.head = (q.head + 1) & (len(q.ring) - 1)
	q.len--
	q.next, q.usual, q.failed = 0, 0, false
	q.doubted = max(0, q.doubted-1)
	if q.unsent > 0 {
		q.unsent--
	} else {
		q.offset = 0
	}
	return b
}

// before returns how many batches are before b, or all of them where it is not there, or partly answered.
func (q *inflight) before(b *Batch) (n int) {
	for n < q.len && (q.at(n) != b || n == 0 && q.next > 0) {
		n++
	}
	return n
}

// asUsual returns how many of the arrived bytes are whole replies of the oldest batch, as it expects them, and
// whether it may expect the rest. Once answered otherwise it expects nothing more.
func (q *inflight) asUsual(in []byte) (bytesOfReplies int, usual bool) {
	if q.usual < 0 || q.len == 0 {
		return 0, false
	}
	rest := q.at(0).Usual[min(q.usual, len(q.at(0).Usual)):]
	in = in[:min(len(in), len(rest))]
	if len(in) == 0 || !bytes.Equal(in, rest[:len(in)]) {
		q.usual = -1
		return 0, false
	}
	k := bytes.LastIndexByte(in, '\n') + 1
	q.usual += k
	return k, true
}

// sent counts n bytes of the batch at unsent as handed to the kernel.
func (q *inflight) sent(n int) {
	q.offset += n
	if q.offset == len(q.at(q.unsent).Buf) {
		q.unsent++
		q.offset = 0
	}
}
