//go:build unix

package main

import (
	"os"
	"slices"
	"sync/atomic"
	"syscall"
	"time"
)

// signals decides how a signal reached redlock. The job and the keeper are in one group: what both have got was sent to
// the group, and the program has had it too. What only one of them has got was sent to redlock alone.
type signals struct {
	own  chan os.Signal      // what the keeper has got
	jobs chan syscall.Signal // what the job has got
	due  chan arrival

	coming atomic.Int32 // those not decided, or not taken from due
}

func newSignals() *signals {
	s := &signals{own: make(chan os.Signal, 64), jobs: make(chan syscall.Signal, 64), due: make(chan arrival, 64)}
	receive(s.own)
	go s.pair()
	return s
}

// areComing reports whether signals have arrived that were not taken from due.
func (s *signals) areComing() bool {
	return s.coming.Load() > 0 || len(s.own) > 0 || len(s.jobs) > 0 || len(s.due) > 0
}

// pair waits for the second of each two signals. It runs as long as the process.
func (s *signals) pair() {
	var halves pairs
	look := time.NewTicker(pairPause / pairLooks)
	look.Stop()
	for {
		wasOpen := halves.areOpen()
		select {
		case got := <-s.own:
			s.add(&halves, got.(syscall.Signal), true)
		case got := <-s.jobs:
			s.add(&halves, got, false)
		case <-look.C:
			for len(s.own)+len(s.jobs) > 0 { // what has come is known before a judgement
				select {
				case got := <-s.own:
					s.add(&halves, got.(syscall.Signal), true)
				case got := <-s.jobs:
					s.add(&halves, got, false)
				}
			}
			for _, alone := range halves.look() {
				s.due <- alone
			}
		}
		s.coming.Store(int32(len(halves.first)))
		switch isOpen := halves.areOpen(); {
		case isOpen && !wasOpen:
			look.Reset(pairPause / pairLooks)
		case !isOpen:
			look.Stop()
		}
	}
}

// add adds the half of a signal, and passes on a whole one.
func (s *signals) add(halves *pairs, number syscall.Signal, isOwn bool) {
	h := half{arrival: arrival{signal: number, at: time.Now()}, isOwn: isOwn}
	if whole, isWhole := halves.add(h); isWhole {
		s.due <- whole
	}
}

// half is a signal that one of the two processes has got.
type half struct {
	arrival
	isOwn bool // the keeper has got it
	again bool // it came right after a whole one: it is dropped, and its second too
	looks int  // since then
}

// pairs is the signals of a moment. The moment is counted in looks of this process, not on a clock: while it stands still,
// by SIGSTOP or on a busy machine, the second half of a signal cannot come, and is not late.
type pairs struct {
	first []half // without a second, in the order of arrival
	whole []half
}

const (
	// pairPause is how long the second of two signals to a group may take. On a machine with sixteen such jobs at once 30 ms
	// were too few: a ^C came three times.
	pairPause = 100 * time.Millisecond
	// pairLooks is the number of looks in that time.
	pairLooks = 4
)

// add takes a half, and returns the signal if it is whole by that. One that comes again at once is dropped: timeout(1)
// sends to its child, and then to the group.
func (p *pairs) add(h half) (arrival, bool) {
	isAlike := func(other half) bool { return other.signal == h.signal }
	i := slices.IndexFunc(p.first, isAlike)
	switch {
	case i < 0:
		h.again = slices.ContainsFunc(p.whole, isAlike)
		p.first = append(p.first, h)
		return arrival{}, false
	case p.first[i].isOwn == h.isOwn:
		return arrival{}, false
	}
	first := p.first[i]
	p.first = slices.Delete(p.first, i, i+1)
	if first.again {
		return arrival{}, false
	}
	h.at, h.isOfGroup = first.at, true
	p.whole = append(p.whole, h)
	return h.arrival, true
}

// look returns the signals without a second half whose moment is over, in the order of arrival.
func (p *pairs) look() (alone []arrival) {
	isOver := func(h half) bool { return h.looks > pairLooks }
	for _, halves := range [][]half{p.first, p.whole} {
		for i := range halves {
			halves[i].looks++
		}
	}
	for _, h := range p.first {
		if isOver(h) && !h.again {
			alone = append(alone, h.arrival)
		}
	}
	p.first, p.whole = slices.DeleteFunc(p.first, isOver), slices.DeleteFunc(p.whole, isOver)
	return alone
}

// areOpen reports whether there is something to look at.
func (p *pairs) areOpen() bool { return len(p.first)+len(p.whole) > 0 }
