package client

import (
	"context"
	"errors"
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/client/engine"
)

// A set kept from its keys by others takes them one by one: see Collected in waiting/DESIGN.md.
const (
	// leastPatience is how long a set waits before it collects. Of most sets the longest wait is shorter.
	leastPatience = 2 * time.Second

	// mostSpan bounds how long a set collects.
	mostSpan = 30 * time.Second
)

// patience is how long a set waits before it collects its keys. It collects for no longer, so others have its keys half
// of the time.
type patience struct {
	since, until clock.Instant // clock.Never: it does not collect
	least        time.Duration
}

func (w *want) patience() patience {
	if !w.isSet() || w.t.IsLimited() {
		return patience{until: clock.Never}
	}
	return patience{since: w.t.Began, until: w.t.Began.Add(leastPatience), least: leastPatience}
}

// collect takes the keys one by one, and then the lock on all of them. After some errors its caller goes on waiting.
func (w *want) collect(p *patience) (_ Handle, err error) {
	w.Config.Underway.Enter() // the end of the client waits: what is collected is given back
	defer w.Config.Underway.Leave()
	now := w.clock.Now()
	until := now.Add(min(now.Sub(p.since), mostSpan))
	held := make([]Handle, 0, len(w.s.More.Keys))
	defer func() {
		p.least = min(2*p.least, mostSpan)
		p.since = w.clock.Now()
		p.until = p.since.Add(p.least)
		w.c.Each(func(c *engine.Call) { c.Ahead = nil })
		for _, h := range held {
			h.ReleaseAsync()
		}
	}()
	next := w.c
	for at, key := range w.s.More.Keys {
		h, err := w.collectOne(w.site.at(w.s.More, at), key, until)
		if err != nil {
			return Handle{}, err
		}
		held = append(held, h)
		h.hold.ReportLoss() // to no hook: its caller has no lock yet
		h.KeepAlive(context.Background())
		next.Ahead = h.giveWay
		next = next.And
	}
	w.t.Attempts++
	h, err := w.unlessEnding(w.attempt(0, false))
	if err != nil {
		w.eachKey(w.s.Key, w.s.More, func(g *site, key string) { g.lines.Freed(key, 0) })
	}
	return h, err
}

// collectOne is the lock of one key, in line.
func (w *want) collectOne(g *site, key string, until clock.Instant) (h Handle, err error) {
	one := wants.Get().(*want)
	defer one.free()
	one.site, one.settings, one.Mode, one.ttl, one.stage = g, w.settings, w.Mode, w.ttl, collects
	one.limit, one.own, one.ctx = w.limit, w.own, w.ctx
	one.options = append(one.options, option{site: g, Key: key})
	if at := one.limit.At; at == 0 || until < at {
		one.limit.At = until
	}
	one.t = g.lines.NewTries(key, 0)
	if err = one.choose(0, nil); err != nil {
		return Handle{}, err
	}
	h, err = one.inLines()
	if err == context.Canceled && !w.limit.IsOver(w.clock.Now()) {
		return Handle{}, engine.ErrTaken
	}
	return h, err
}

// shouldRetry notes the end of an attempt, and reports whether another is to follow. A key of a set that takes them one by
// one is waited for while it is taken, and for no other reason.
func (w *want) shouldRetry(err error) bool {
	return w.t.ShouldRetry(err) && (w.stage != collects || errors.Is(err, engine.ErrTaken))
}
