//go:build unix

package main

import (
	"os"
	"slices"
	"sync/atomic"
	"syscall"
	"time"
)

// signals finds out how a signal reached redlock. The job and the keeper are in one group. A signal to both was sent to
// the group, and so to the program too. A signal to only one of them was sent to redlock alone.
type signals struct {
	own  chan os.Signal      // the keeper's signals
	jobs chan syscall.Signal // the job's signals
	due  chan arrival

	coming atomic.Int32 // signals not decided, or not taken from due
}

func newSignals() *signals {
	s := &signals{own: make(chan os.Signal, 64), jobs: make(chan syscall.Signal, 64), due: make(chan arrival, 64)}
	receive(s.own)
	go s.pair()
	return s
}

// areComing reports whether there are signals not yet taken from due.
func (s *signals) areComing() bool {
	return s.coming.Load() > 0 || len(s.own) > 0 || len(s.jobs) > 0 || len(s.due) > 0
}

// pair waits for the second half of each signal. It runs as long as the process.
func (s *signals) pair() {
	var halves pairs
	look := time.NewTicker(pairPause / pairLooks)
	look.Stop()
	isDue := false
	for {
		wasOpen := halves.areOpen()
		select {
		case got := <-s.own:
			s.add(&halves, got.(syscall.Signal), true)
		case got := <-s.jobs:
			s.add(&halves, got, false)
		case <-look.C:
			isDue = true
		}
		if isDue && len(s.own)+len(s.jobs) == 0 { // signals already here are known before a judgement
			isDue = false
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

// half is a signal received by one of the two processes.
type half struct {
	arrival
	isOwn bool // the keeper received it
	looks int  // since then
	again bool // it came right after a whole signal: it is dropped, and its second half too
}

// pairs holds the signals of a moment. The moment is counted in looks of this process, not on a clock. While this
// process stands still, by SIGSTOP or on a busy machine, the second half of a signal cannot come, and is not late.
type pairs struct {
	first []half // without a second, in the order of arrival
	whole []half
}

const (
	// pairPause is the time for the second half of a signal to a group to come. On a machine with sixteen such jobs at
	// once 30 ms were too few: a ^C came three times.
	pairPause = 100 * time.Millisecond
	// pairLooks is the number of looks in that time.
	pairLooks = 4
)

// add takes a half, and returns the signal if this makes it whole. A signal that comes again at once is dropped:
// timeout(1) sends to its child, and then to the group.
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

// look returns, in order of arrival, the signals whose moment has passed without a second half.
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
