package group

import (
	"context"
	"log/slog"
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/base/metrics"
	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/client/texts"
)

// news is what the log says of a node. The driver lock protects it.
//
// A warning is followed by its end, at the same level, or a reader of warnings would take the node for down for ever.
// The lines of a node are bounded, however often it comes and goes: beyond linesAtOnce there is one each linesEvery, with the
// state of the node then. So the last line is true, at most linesEvery after the last change.
type news struct {
	said    state
	is      state         // what is to be said when there may be a line again
	unsaid  int           // changes since the last line
	lines   int           // that may be written now
	counted clock.Instant // when lines were counted
	rested  bool          // it was said that the server closes idle connections
}

// state is that of a node, for the log.
type state uint8

const (
	unknownYet state = iota
	isUp
	isDown
	noVote
)

const (
	linesAtOnce = 6 // of a node: twelve in its first minute, and sixty where five nodes come and go
	linesEvery  = 10 * time.Second
)

// mayWrite reports whether there may be a line now, and counts it.
func (w *news) mayWrite(now clock.Instant) bool {
	if w.counted == 0 {
		w.counted, w.lines = now, linesAtOnce
	}
	more := int(now.Sub(w.counted) / linesEvery)
	w.lines = min(w.lines+more, linesAtOnce)
	if w.lines == linesAtOnce {
		w.counted = now
	} else {
		w.counted = w.counted.Add(time.Duration(more) * linesEvery)
	}
	if w.lines == 0 {
		return false
	}
	w.lines--
	return true
}

// say has the log say what a node is now, or later if it has said too much. The driver lock is held.
func (g *Group) say(i int, is state, s *metrics.Node) {
	w, now := &g.news[i], g.Config.Clock.Now()
	w.is = is
	if is == noVote && w.said == noVote && w.unsaid == 0 { // its notice was given again
		return
	}
	if !w.mayWrite(now) {
		w.unsaid++
		g.turnAt(w.counted.Add(linesEvery))
		return
	}
	g.write(i, s)
}

// write has the log say what a node is.
func (g *Group) write(i int, s *metrics.Node) {
	w := &g.news[i]
	before := w.said
	level, text, args := slog.LevelWarn, "", []any{"node", s.Addr}
	switch w.is {
	case isUp:
		switch text = "redlock: node is up again"; {
		case before == noVote && s.NoVote == nil:
			text = "redlock: node has its vote back"
		case before == isUp, before == unknownYet:
			level, text = slog.LevelInfo, "redlock: node is up"
			args = append(args, "server", s.Server, "releases by", s.Dialect)
		default:
			args = append(args, "server", s.Server)
		}
	case isDown:
		text = "redlock: node is down"
		if before == isDown && w.unsaid == 0 {
			text = "redlock: node stays down"
		}
		args = append(args, "error", s.Err)
	case noVote:
		text = "redlock: node may have forgotten locks, and has no vote yet: restart no other node until it has"
		args = append(args, "for", texts.Rounded(s.NoVoteFor))
	}
	if w.unsaid > 0 {
		args = append(args, "changes not shown", w.unsaid)
	}
	w.said, w.unsaid = w.is, 0
	g.log(level, text, args...)
}

// log has the Logger, user code, called by the goroutine of callbacks. The driver lock is held.
func (g *Group) log(level slog.Level, text string, args ...any) {
	log := g.Config.Logger
	g.Engine.Notify(engine.News(func() { log.Log(context.Background(), level, text, args...) }))
}

// turnAt has Turn called at an instant. The driver lock is held.
func (g *Group) turnAt(at clock.Instant) {
	if int64(at) < g.turn.Load() {
		g.turn.Store(int64(at))
		g.Config.Ring()
	}
}

// Turn says what was left unsaid, and looks at nodes whose quarantine has ended. It returns the pause to the next turn.
func (g *Group) Turn() time.Duration {
	if g.warns.Load() {
		g.WarnUnready()
	}
	if left := clock.Instant(g.turn.Load()).Sub(g.Config.Clock.Now()); left > 0 {
		return left
	}
	g.Engine.DriverLock().Lock()
	defer g.Engine.DriverLock().Unlock()
	g.turn.Store(int64(clock.Never))
	next, now := clock.Never, g.Config.Clock.Now()
	for i := range g.news {
		w := &g.news[i]
		if w.unsaid > 0 && w.mayWrite(now) {
			s := g.Node(i)
			g.write(i, &s)
		}
		if w.unsaid > 0 {
			next = min(next, w.counted.Add(linesEvery))
		}
		if left := g.fleet.left(i); left > 0 {
			next = min(next, now.Add(left))
		}
	}
	g.review()
	g.turn.Store(min(g.turn.Load(), int64(next)))
	return clock.Instant(g.turn.Load()).Sub(now)
}

// WarnUnready logs why no lock can be acquired yet, if so. It is followed by a line when one can. Nodes of a fenced client are
// heard first.
func (g *Group) WarnUnready() {
	if g.Fence.IsAsking() {
		g.warns.Store(true) // Turn is next called when one has answered
		return
	}
	g.warns.Store(false)
	_, _, why := g.readinessNow(false)
	g.Engine.DriverLock().Lock()
	defer g.Engine.DriverLock().Unlock()
	if why != nil && !g.voting {
		g.unready = true
		g.log(slog.LevelWarn, "redlock: no lock can be acquired yet", "error", why)
	}
}
