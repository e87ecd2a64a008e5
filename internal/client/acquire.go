package client

import (
	"context"
	"errors"
	"slices"

	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/client/waiting"
	"github.com/redlock-go/redlock/quorum"
)

// inLines is Acquire after the callers and the processes already waiting for its keys.
func (w *want) inLines() (Handle, error) {
	t := &w.t
	if w.stage != anew || slices.ContainsFunc(w.options, func(o option) bool { return !o.isContended() }) {
		t.Attempts++
		h, err := w.ask()
		if err == nil || !w.shouldRetry(err) {
			return h, err
		}
	}
	w.in = w.stand()
	defer func() { w.in.Leave() }()
	for patience := w.patience(); ; {
		t.Wait(w.stage == collects || w.isSet() && (!w.in.Stands() || t.IsLimited()), patience.until)
		why, at, handed := w.in.Await(w.limit, t)
		switch why {
		case waiting.MayAttempt, waiting.Sent:
		case waiting.MayLook:
			if t.IsLimited() || w.Mode&Shared != 0 { // each attempt counts; whether the lock has a holder says nothing to those who share it
				break
			}
			if err := w.lookInTurn(at); err != nil {
				return Handle{}, err
			}
			continue
		case waiting.Handed:
			o := &w.options[at]
			h := handleOf(o.site, handed, o.Key, nil)
			if h.Remaining() > 0 {
				t.End = waiting.HandedOver
				return w.unlessEnding(h, nil)
			}
			h.ReleaseAsync() // the caller's goroutine has waited long to run again
			t.Hear(w.clock.Now(), engine.ErrExpired)
			w.in.Leave()
			w.in = w.stand()
			continue
		case waiting.Closed:
			return Handle{}, engine.ErrClosed
		default:
			return Handle{}, context.Canceled // for gaveUp
		}
		t.Attempts++
		h, err := w.unlessEnding(w.attempt(at, why == waiting.Sent))
		goesOn := w.shouldRetry(err)
		if err != nil && !goesOn {
			w.in.Hear(t)
		}
		w.note(w.in, h, at, err, goesOn)
		if !goesOn {
			return h, err
		}
		if errors.Is(err, engine.ErrTaken) && w.clock.Now() >= patience.until && w.in.MayCollect() {
			w.in.Leave()
			w.in = nil
			if h, err = w.collect(&patience); err == nil || !t.ShouldRetry(err) {
				return h, err
			}
			w.in = w.stand()
		}
	}
}

// note notes in the lines how an attempt on an option has ended. Its caller rests at once.
func (w *want) note(d *waiting.Demand, h Handle, at int, err error, goesOn bool) {
	switch {
	case !w.isSet():
		d.Attempted(h.hold, w.c.Tally, err, goesOn)
	case !errors.Is(err, engine.ErrTaken) || !goesOn: // it has won; or no holder has denied it, and it stands before others in no line
		d.Left(h.hold)
	case !d.Missed(w.deniedAt): // it waits for no turn, and stands again where it was denied
		for at := range w.s.More.Keys {
			if w.deniedAt(at) != 0 {
				d.Join(at, w.seatOf(at, waiting.Ended{At: w.clock.Now(), Err: err}))
			}
		}
	}
}

// stand has the caller stand in line: for each option, at its first key; for a set at each key that was denied, or, if
// it has not asked, is contended.
func (w *want) stand() *waiting.Demand {
	if w.isSet() {
		seats := make([]waiting.Seat, len(w.s.More.Keys))
		for at, key := range w.s.More.Keys {
			if w.deniedAt(at) != 0 || w.t.Attempts == 0 && w.site.at(w.s.More, at).lines.IsContended(key) {
				seats[at] = w.seatOf(at, w.options[0].last)
			}
		}
		return w.lines.Stand(true, nil, seats...)
	}
	var room [1]waiting.Seat // on the stack of the caller of one key
	seats := room[:0]
	for i := range w.options {
		o := &w.options[i]
		seat := waiting.Seat{Lines: o.site.lines, Key: o.Key, Share: w.Mode&Shared != 0, Last: o.last}
		if o.More == nil && w.Mode&Shared == 0 && !w.term.isFixed() { // it does not move, and ends with its TTL
			seat.Wants = waiting.Passable{TTL: w.s.TTL, More: w.own}
		}
		if !o.site.lines.CanBeWoken() && !w.t.IsLimited() {
			seat.Last.Denied = 0 // it asks again at once, in case of a release before it is in line
		}
		seats = append(seats, seat)
	}
	var call *engine.Call
	if len(seats) == 1 {
		call = w.c
	}
	return w.lines.Stand(false, call, seats...)
}

// seatOf is where a set waits for one of its keys, after an attempt.
func (w *want) seatOf(at int, last waiting.Ended) waiting.Seat {
	last.Denied = w.deniedAt(at)
	return waiting.Seat{Lines: w.site.at(w.s.More, at).lines, Key: w.s.More.Keys[at], Share: w.Mode&Shared != 0, Last: last}
}

// deniedAt returns the nodes that have denied a key of a set in the last attempt.
func (w *want) deniedAt(at int) quorum.Set {
	if c := denied(w.c, at); c != nil {
		return c.Tally.Nodes(quorum.Denied)
	}
	return 0
}

// unlessEnding gives a lock back that a waiting caller has got while the client ends. The end waits for callers in
// lines: so the release is sent, where one by the user might come too late.
func (g *site) unlessEnding(h Handle, err error) (Handle, error) {
	if err != nil || !engine.IsClosed(g.ending) {
		return h, err
	}
	h.ReleaseAsync()
	return Handle{}, engine.ErrClosed
}
