package virtual

import (
	"math/rand/v2"
	"time"
)

// Link is the way between a dialing host and a dialed address. Its methods act on present and
// future connections, unless their comments name others.
type Link struct {
	net         *Network
	there, back *path
	refused     bool
	dropped     bool // the first packets of dials are lost
	holds       int
	opened      chan struct{} // closed at the end of a hold; nil without one
}

// path is one direction of a link. The mutex of the network guards it.
type path struct {
	net           *Network
	rng           *rand.Rand
	delay, jitter time.Duration
	held          bool
	streams       map[*stream]struct{} // those with a reader
}

func newPath(n *Network, rng *rand.Rand) *path {
	return &path{net: n, rng: rng, delay: 100 * time.Microsecond, jitter: 50 * time.Microsecond, streams: map[*stream]struct{}{}}
}

// due is the arrival of bytes sent now, not before the last ones.
func (p *path) due(last time.Time) time.Time {
	due := time.Now().Add(p.delay)
	if p.jitter > 0 {
		due = due.Add(time.Duration(p.rng.Int64N(int64(p.jitter))))
	}
	if due.Before(last) {
		return last
	}
	return due
}

// Delay sets how long bytes take, there and back; up to jitter is added to each.
func (l *Link) Delay(there, back, jitter time.Duration) {
	l.net.mu.Lock()
	defer l.net.mu.Unlock()
	l.there.delay, l.back.delay = there, back
	l.there.jitter, l.back.jitter = jitter, jitter
}

// Hold keeps bytes back, in the named directions, until as many calls of Release: like a network
// that loses packets and sends them again. Meanwhile dials get no answer.
func (l *Link) Hold(there, back bool) {
	l.net.mu.Lock()
	defer l.net.mu.Unlock()
	l.there.held, l.back.held = l.there.held || there, l.back.held || back
	l.holds++
	if l.holds == 1 {
		l.opened = make(chan struct{})
	}
}

// Release undoes one Hold. With the last one the held bytes arrive.
func (l *Link) Release() {
	l.net.mu.Lock()
	defer l.net.mu.Unlock()
	l.holds--
	if l.holds > 0 {
		return
	}
	close(l.opened)
	l.opened = nil
	for _, p := range []*path{l.there, l.back} {
		p.held = false
		for s := range p.streams {
			s.release()
		}
	}
}

// Lose makes black holes of the present connections: they stay open, and nothing arrives on them
// any more, not even their end.
func (l *Link) Lose() { l.each((*stream).vanish) }

// Reset cuts off the present connections.
func (l *Link) Reset() { l.each((*stream).reset) }

// CutOff resets the present connections, for their dialers alone, as a middlebox does: their sent
// bytes arrive late, and the peer's end after them.
func (l *Link) CutOff(late time.Duration) {
	l.net.mu.Lock()
	defer l.net.mu.Unlock()
	for s := range l.there.streams {
		s.orphan(late)
	}
	for s := range l.back.streams {
		s.reset()
	}
}

func (l *Link) each(f func(*stream)) {
	l.net.mu.Lock()
	defer l.net.mu.Unlock()
	for _, p := range []*path{l.there, l.back} {
		for s := range p.streams {
			f(s)
		}
	}
}

// Drop sets whether the link loses packets: present connections are black holes from then on, and a dial's first
// packet is lost. It is sent again after 1, 3, 7 s, as by TCP.
func (l *Link) Drop(dropped bool) {
	l.net.mu.Lock()
	l.dropped = dropped
	l.net.mu.Unlock()
	if dropped {
		l.Lose()
	}
}

// Refuse sets whether dials are refused.
func (l *Link) Refuse(refused bool) {
	l.net.mu.Lock()
	defer l.net.mu.Unlock()
	l.refused = refused
}
