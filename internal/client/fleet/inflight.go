package fleet

// inflight is the bounded queue of the batches that one connection still owes
// replies for, oldest first. A batch keeps its place when its caller has gone, since
// replies are assigned to batches by their order.
//
// The kernel has taken all bytes of the batches before unsent, counted from the
// oldest, and offset bytes of the batch at unsent.
type inflight struct {
	ring    []*Batch // power of two, so that an index wraps with a mask
	head    int
	len     int
	replies int // owed, over all batches
	bytes   int // of all batches
	next    int // replies of the oldest batch that have been read
	unsent  int
	offset  int
}

const minRing = 16

func (q *inflight) at(i int) *Batch { return q.ring[(q.head+i)&(len(q.ring)-1)] }

// push appends a batch, none of which is handed to the kernel yet.
// The caller enforces the bound; the ring grows and does not shrink.
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

// oldest is the batch that the next reply belongs to, or nil.
func (q *inflight) oldest() *Batch {
	if q.len == 0 || q.unsent == 0 && q.offset == 0 {
		return nil // no reply is owed
	}
	return q.at(0)
}

// replied counts one reply of the oldest batch; last reports that it was its last.
func (q *inflight) replied() (i int, last bool) {
	i = q.next
	q.next++
	q.replies--
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
	q.next = 0
	if q.unsent > 0 {
		q.unsent--
	} else {
		q.offset = 0
	}
	return b
}

// backlog is the bytes that the kernel has not taken, first piece first.
func (q *inflight) backlog() []byte {
	if q.unsent == q.len {
		return nil
	}
	return q.at(q.unsent).Buf[q.offset:]
}

// sent counts n bytes of the backlog's first piece as handed to the kernel.
func (q *inflight) sent(n int) {
	q.offset += n
	if q.offset == len(q.at(q.unsent).Buf) {
		q.unsent++
		q.offset = 0
	}
}
