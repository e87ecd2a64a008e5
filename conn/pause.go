package conn

import (
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
)

// Pauses between the dials of a node.
const (
	minBackoff = 20 * time.Millisecond
	maxBackoff = 2500 * time.Millisecond
	// wantedBackoff bounds the pause while a caller is in want of a quorum, for wantedFor after it has said so last.
	wantedBackoff = 250 * time.Millisecond
	wantedFor     = 2 * time.Second
	// permanentPause is the shortest pause after a permanent error: a shorter one would fill the server's log.
	permanentPause = time.Second
	// youth is the age before which the end of a connection counts as a failed dial.
	youth = 10 * time.Second
)

// shortage is whether a caller is in want of a quorum. The lock protects it.
type shortage struct {
	last clock.Instant // when one has said so last; 0: never
	news chan struct{} // closed when one does after a time without
}

// Want notes that a caller waits, or has failed, for want of a quorum. Nodes that are down are dialed more often for a
// while.
func (f *Fleet) Want() {
	now := f.now()
	if !f.shortage.lasts(now) {
		close(f.shortage.news)
		f.shortage.news = make(chan struct{})
	}
	f.shortage.last = now
}

func (w *shortage) lasts(now clock.Instant) bool { return w.last != 0 && now < w.last.Add(wantedFor) }

// wanted reports whether a caller is in want of a quorum, and returns a channel closed by the news that one is. It is
// called without the lock.
func (f *Fleet) wanted() (is bool, news <-chan struct{}) {
	f.lock.Lock()
	defer f.lock.Unlock()
	return f.shortage.lasts(f.now()), f.shortage.news
}

// backoff is the pause before an attempt, counted from 1: full jitter over an exponential. So the many clients of a
// lost node do not return together. cause is the error of the connection or the attempt before.
func (f *Fleet) backoff(attempt int, cause error) time.Duration {
	if permanent(cause) {
		return f.cfg.permanentPause + time.Duration(f.cfg.knobs.Rand()*float64(2*f.cfg.permanentPause))
	}
	ceiling := min(minBackoff<<min(attempt-1, 10), maxBackoff)
	return max(time.Duration(f.cfg.knobs.Rand()*float64(ceiling)), time.Millisecond)
}

// pause waits before an attempt. It returns false once the fleet is closed. A caller in want of a quorum ends it within
// wantedBackoff of the beginning of the attempt before, which took some time: so a packet is sent to a silent node four
// times a second then.
func (f *Fleet) pause(attempt int, cause error, took time.Duration) bool {
	until := time.Now().Add(f.backoff(attempt, cause))
	for {
		wanted, news := f.wanted()
		if permanent(cause) {
			news = nil
		} else if wanted {
			soon := time.Now().Add(time.Duration(f.cfg.knobs.Rand()*float64(wantedBackoff)) - took)
			news = nil
			if soon.Before(until) {
				until = soon
			}
		}
		timer := time.NewTimer(time.Until(until))
		select {
		case <-timer.C:
			return true
		case <-news:
			timer.Stop()
		case <-f.ctx.Done():
			timer.Stop()
			return false
		}
	}
}
