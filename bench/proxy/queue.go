package proxy

import (
	"math/rand/v2"
	"time"
)

// chunk is what was read at once, and when it may leave.
type chunk struct {
	due   time.Time
	bytes []byte
}

// queue is one direction of a connection: what is under way on it. The zero
// value carries without delay.
type queue struct {
	chunks []chunk
	ended  bool      // nothing more comes: the sender has closed
	last   time.Time // when the last chunk is due
}

// push takes bytes that have just arrived. They leave after the delay, but not
// before what came earlier: a connection keeps its order under jitter, too.
func (q *queue) push(now time.Time, bytes []byte, delay, jitter time.Duration) {
	if jitter > 0 {
		delay += rand.N(jitter)
	}
	if due := now.Add(delay); due.After(q.last) {
		q.last = due
	}
	q.chunks = append(q.chunks, chunk{q.last, bytes})
}

// next is when the first chunk is due, or the zero time if there is none.
func (q *queue) next() time.Time {
	if len(q.chunks) == 0 {
		return time.Time{}
	}
	return q.chunks[0].due
}

// ready are the bytes that may leave now; taken counts those that did.
func (q *queue) ready(now time.Time) []byte {
	if len(q.chunks) == 0 || q.chunks[0].due.After(now) {
		return nil
	}
	return q.chunks[0].bytes
}

// taken drops the first n bytes of what was ready.
func (q *queue) taken(n int) {
	first := &q.chunks[0]
	if first.bytes = first.bytes[n:]; len(first.bytes) == 0 {
		first.bytes = nil
		q.chunks = q.chunks[1:]
	}
}
