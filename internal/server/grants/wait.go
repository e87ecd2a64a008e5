package grants

import (
	"cmp"
	"context"
	"time"
)

// queue holds the callers waiting until a key is free, in order. They ask for nothing: each is woken once, and its
// client then tries to acquire. So they are woken one at a time, as BLPOP does for one element. A caller of
// Client.Acquire in their place would take the lock from the very clients it wakes.
type queue struct {
	waiters []chan struct{}
	woken   int           // waiters so far
	err     error         // of the last question to the nodes
	ended   chan struct{} // closed when the last has left
}

// The pauses between two questions to the nodes about a key with waiters. They double from the
// first to the second for a lock granted by another process. A lock of this process is released
// through it, as a rule, and the release wakes the first waiter at once. Such a key is asked for
// once a second, since no belief outlives that. No pause outlives the TTL shown by the nodes. With
// many keys the pauses are longer: 250 questions a second in all.
const (
	firstPause = 50 * time.Millisecond
	pollPause  = 250 * time.Millisecond
	ownPause   = time.Second
	minPause   = 10 * time.Millisecond // the nodes keep a lock for longer than its client sees
	perKey     = 4 * time.Millisecond
)

// pause is the time for which the nodes are not asked for a key after their last answer.
func (s *Store) pause(key string, seen State, last time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := min(max(2*last, firstPause), pollPause)
	if !seen.Held {
		next = firstPause
	} else if g := s.table[key]; g != nil && g.value == seen.Value && !g.isOver() {
		next = ownPause
	}
	if seen.TTL > 0 {
		next = min(next, max(seen.TTL, minPause))
	}
	return max(next, time.Duration(len(s.queues))*perKey)
}

// Wait waits until the lock on key is free, or ctx ends. It reports whether it is free. The error is ctx's, or the
// reason why the nodes could not be asked.
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
		case <-woken: // by a release, used up by this caller
			return true, nil
		default:
			return false, cmp.Or(s.failure(q), ctx.Err())
		}
	}
}

// failure is the reason why the nodes could not be asked the last time, or nil.
func (s *Store) failure(q *queue) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return q.err
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

// woken is the number of waiters for a key woken so far.
func (s *Store) woken(key string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.queues[key]; q != nil {
		return q.woken
	}
	return 0
}

// freed wakes the first waiter for a key, unless another was woken since: the lock is meant for that one.
func (s *Store) freed(key string, since int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.queues[key]; q != nil && q.woken == since {
		q.waiters[0] <- struct{}{}
		q.woken++
		q.waiters = q.waiters[1:]
		s.endIfEmpty(key, q)
	}
}

// poll asks the nodes for a key while it has waiters: its lock may end by its TTL, or through
// another process.
func (s *Store) poll(key string, q *queue) {
	pause := time.Duration(0)
	again := time.NewTimer(0)
	defer again.Stop()
	for {
		select {
		case <-q.ended:
			return
		case <-again.C:
		}
		woken := s.woken(key)
		seen, err := s.Look(s.kept, key)
		s.mu.Lock()
		if s.kept.Err() == nil {
			q.err = err
		}
		s.mu.Unlock()
		if err == nil && !seen.Held {
			s.freed(key, woken)
		}
		pause = s.pause(key, seen, pause)
		again.Reset(pause)
	}
}
