package grants

import (
	"context"
	"time"
)

// queue is the callers that wait until a key is free, the first first. They ask for nothing: each
// is woken once, and its client then tries to acquire. So they are woken one at a time, as BLPOP
// does for one element; a caller of Client.Acquire in their place would keep the clients that it
// wakes from the lock.
type queue struct {
	waiters []chan struct{}
	ended   chan struct{} // closed when the last has left
}

// pollPause is how often the nodes are asked for a key that is waited for. A release through this
// process wakes the first at once.
const pollPause = 50 * time.Millisecond

// Wait waits until the lock on key is free, or ctx ends. It reports whether it is free.
func (s *Store) Wait(ctx context.Context, key string) (free bool, err error) {
	woken := make(chan struct{}, 1)
	s.mu.Lock()
	q := s.queues[key]
	if q == nil {
		q = &queue{ended: make(chan struct{})}
		s.queues[key] = q
		go s.poll(key, q)
	}
	q.waiters = append(q.waiters, woken)
	s.mu.Unlock()
	select {
	case <-woken:
		return true, nil
	case <-ctx.Done():
		s.leave(key, q, woken)
		select {
		case <-woken: // by a release that this caller uses up
			return true, nil
		default:
			return false, ctx.Err()
		}
	}
}

// leave removes a waiter. The last one ends the queue.
func (s *Store) leave(key string, q *queue, woken chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, w := range q.waiters {
		if w == woken {
			q.waiters = append(q.waiters[:i], q.waiters[i+1:]...)
			s.endIfEmpty(key, q)
			return
		}
	}
}

// endIfEmpty ends a queue without waiters. s.mu is held.
func (s *Store) endIfEmpty(key string, q *queue) {
	if len(q.waiters) == 0 && s.queues[key] == q {
		delete(s.queues, key)
		close(q.ended)
	}
}

// freed wakes the first that waits for a key.
func (s *Store) freed(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.queues[key]; q != nil {
		q.waiters[0] <- struct{}{}
		q.waiters = q.waiters[1:]
		s.endIfEmpty(key, q)
	}
}

// poll asks the nodes for a key while it is waited for: its lock may end by its TTL, or through
// another process.
func (s *Store) poll(key string, q *queue) {
	tick := time.NewTicker(pollPause)
	defer tick.Stop()
	for {
		if seen, err := s.Look(s.kept, key); err == nil && !seen.Held {
			s.freed(key)
		}
		select {
		case <-q.ended:
			return
		case <-tick.C:
		}
	}
}
