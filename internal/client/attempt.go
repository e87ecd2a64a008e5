package client

import (
	"context"
	"fmt"
	"time"

	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/client/waiting"
	"github.com/redlock-go/redlock/internal/rules/fencing"
	"github.com/redlock-go/redlock/internal/wire/token"
	"github.com/redlock-go/redlock/quorum"
)

// attempt is one attempt on an option.
func (w *want) attempt(at int, sent bool) (h Handle, err error) {
	if w.at != at {
		if err := w.choose(at, nil); err != nil {
			return Handle{}, err
		}
	}
	o := &w.options[at]
	h, err = w.attemptAt(o.site, sent)
	o.last.Err, o.last.Denied = err, w.c.Tally.Nodes(quorum.Denied) // also of a lock that was won
	if err != nil {
		o.last.At = w.clock.Now()
		w.t.Ended = o.last.At
	}
	return h, err
}

// attemptAt is one attempt of a caller, in rounds. In most cases one round is all of it.
func (w *want) attemptAt(g *site, sent bool) (Handle, error) {
	for splits, oldNews := 0, 0; ; sent = false {
		h, what, err := w.round(g, sent, splits)
		switch {
		case what == afterSplit && splits == waiting.MaxSplits:
			return h, engine.ErrTaken // each round had a vote for another
		case what == afterSplit:
			if ended := w.awaitSplit(splits); ended != nil {
				return h, ended
			}
			splits++
		case what == afterOldNews && oldNews == 0:
			oldNews++
		case what != again:
			return h, err
		}
	}
}

// sequel is what follows a round.
type sequel uint8

const (
	done         sequel = iota // nothing: its result is that of the attempt
	again                      // another round, at once: nodes have denied nothing but the number of its fencing token
	afterSplit                 // another, after a pause: those who asked at the same time have split the votes
	afterOldNews               // another, at once, and once: it has met what had happened before. Its release is on the way before
)

// round asks the nodes once, with one new token for all keys. If one key is denied, the others are released. If it was
// sent along with a release, only its end is awaited. The error is context.Canceled where the end of the caller's context has
// ended it.
func (w *want) round(g *site, sent bool, splits int) (h Handle, what sequel, err error) {
	c, s := w.c, &w.s
	counted := s.Several() != nil // by the end of the client, which waits for all of it. None of these is sent along
	var by *engine.Call
	if sent {
		by, err = c.Sent()
	} else {
		f, failed := g.fresh(&c.Proposal, c.Shared)
		if failed != nil {
			return Handle{}, done, failed
		}
		c.About(f.token, f.block, 0)
		if w.in != nil && c.And == nil {
			c.Behind = w.in.Part(token.Join(f.token, c.Tail))
		}
		if counted {
			g.Config.Underway.Enter()
		}
		by, err = c.Do()
	}
	s.Until = c.Least()
	s.Granted = g.clock.Now()
	if err == nil && w.term.isLate(c, s.Until, s.Granted) { // this goroutine may have waited long to run again
		err = engine.ErrExpired
	}
	if err == nil && !stands(c) {
		err = engine.ErrTaken
	}
	c.Note(err)
	if err == nil {
		s.Serial, s.Token = c.Serial, c.Token
		h = handleOf(g, g.keeper.Begin(s, c.AllAbsent(), c.Block.First), s.Key, s.More)
		granted(c)
		w.term.won(g, splits, c.LongestTrip())
	} else {
		c.Rollback(err)
	}
	if counted {
		g.Config.Underway.Leave()
	}
	if err == engine.ErrNoQuorum && metOldNews(c) {
		what = afterOldNews
	}
	repeats, err := siteOf(by.On).Fence.Again(c, err)
	if !repeats || g.Config.OnAttempt != nil {
		err = by.Explain(err)
	}
	switch {
	case err == engine.ErrSplit:
		what = afterSplit
	case repeats:
		what = again
	}
	if g.Config.OnAttempt != nil { // else the clock is not read
		g.report(engine.Attempt{Ctx: w.ctx, Kind: engine.Acquire, Key: s.Key, Took: by.Took(g.clock.Now()), Votes: by.Tally, Err: err})
	}
	return h, what, err
}

// fresh is what each attempt to acquire has anew.
type fresh struct {
	token token.Token
	block fencing.Block // where acquires are fenced
}

// fresh makes the fresh parts of the next attempt. p is what a fenced acquire has proposed before; a shared lock has no
// fencing token.
func (g *site) fresh(p *fencing.Proposal, shared bool) (f fresh, err error) {
	if err := f.token.Fill(g.Config.Rand); err != nil {
		return fresh{}, fmt.Errorf("redlock: %w", err)
	}
	if !shared {
		err = g.Fence.Propose(&f.block, p)
	}
	return f, err
}

// awaitSplit waits for this caller's turn to try again after split votes, and then looks whether another has won
// meanwhile. The attempt itself may not show it: the winner then has a majority, and this caller the other nodes. An
// error is what has ended the wait, or ErrTaken. It holds nothing meanwhile: the release of the lost attempt is on its
// way, and stays ahead of the look and of the next attempt on each connection.
func (w *want) awaitSplit(round int) error {
	split, _ := w.c.Result()
	at := siteOf(split.On)
	pause := at.lines.AfterSplit(string(split.Key), split.Tally.Nodes(quorum.Granted), round, split.Trip)
	limit := split.Watched()
	if limit.At != 0 {
		pause = min(pause, w.left(limit.At))
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-limit.Done:
	case <-w.ending:
		return engine.ErrClosed
	}
	held := !limit.IsOver(w.clock.Now()) && at.IsHeld(split)
	switch {
	case held:
		return engine.ErrTaken
	case limit.IsOver(w.clock.Now()): // before the look, or in it
		return context.Canceled
	}
	return nil
}
