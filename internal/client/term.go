package client

import (
	"cmp"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/quorum"
)

// term is for how long a call of Do is to have its lock, although its function may have returned before. There are two
// reasons. Its user has said so (Options.AtLeast); or the call has won against others that tried at the same time: until
// they have seen its lock, or else they would do the same work again. A nil term ends with the function.
type term struct {
	atLeast time.Duration // from the grant on
	spare   time.Duration // of the TTL, beyond atLeast: for the nodes to answer

	contends bool          // others that try at the same time are to see the lock
	denied   atomic.Bool   // a node has denied an attempt: it was another's there
	granted  clock.Instant // when the lock was won
	contest  time.Duration // from then on, if others were met
}

// stay is for how long a released lock stays at the nodes.
type stay struct {
	left   time.Duration
	passes bool // a caller in line may have it before
}

// newTerm is the term of a call of Do. A shared lock has none: others hold it too.
func newTerm(atLeast time.Duration, mode Mode) *term {
	if mode&Shared != 0 || atLeast == 0 && mode&Once == 0 {
		return nil
	}
	return &term{atLeast: atLeast, contends: mode&Once != 0}
}

// denials is where the denial of a node is noted, or nil: those that wait do not try at the same time as others.
func (t *term) denials() *atomic.Bool {
	if t == nil || !t.contends {
		return nil
	}
	return &t.denied
}

// isFixed reports whether the lock stays also if no other was met.
func (t *term) isFixed() bool { return t != nil && t.atLeast > 0 }

// lengthen has a call ask for a TTL that covers the term: the keys outlive it if the process ends right after the grant,
// also if the nodes had granted the first a while before, and their clocks run faster than this one. Groups are asked one
// after another.
func (t *term) lengthen(c *engine.Call, o *option) {
	if t.isFixed() {
		t.spare = time.Duration(o.More.Turns()) * cmp.Or(o.site.Config.Engine.Timeout, engine.MaxTimeout)
		least := t.atLeast + t.spare
		c.Lengthen(min(least+quorum.Drift(least), longestTerm(o.site)))
	}
}

// longestTerm bounds a term. MaxTTL does not: a node that has forgotten the key of a longer one has no vote on it for
// longer. The nodes drop fencing tokens after MaxTTL, however.
func longestTerm(g *site) time.Duration {
	if g.Config.Fenced {
		return g.Config.Engine.MaxTTL
	}
	return engine.MaxTTL
}

// isLate reports whether a lock that is valid until then comes too late: it is over, or a key may end before a term that
// begins now. Its node may have set it when the call was sent, and has longer to answer a call that has waited long.
func (t *term) isLate(calls *engine.Call, until, now clock.Instant) (late bool) {
	if now >= until || !t.isFixed() {
		return now >= until
	}
	calls.Each(func(c *engine.Call) {
		since := now.Sub(c.SentAt)
		late = late || since > t.spare && since+t.atLeast > c.TTL-quorum.Drift(c.TTL)
	})
	return late
}

// won notes a grant, after so many rounds of split votes.
func (t *term) won(g *site, rounds int, trip time.Duration) {
	if t != nil {
		t.granted, t.contest = g.clock.Now(), g.lines.AfterContest(rounds, trip)
	}
}

// stay is for how long the lock is still to be held. A node may have denied it after the grant. One without an answer
// shows nothing. Losers of a contest see the lock also where it was passed on.
func (t *term) stay(now clock.Instant) (s stay) {
	if t == nil {
		return s
	}
	s = stay{left: t.granted.Add(t.atLeast).Sub(now)}
	if t.denied.Load() && t.contest > t.atLeast {
		s = stay{left: t.granted.Add(t.contest).Sub(now), passes: s.left <= 0}
	}
	if s.left <= 0 {
		return stay{}
	}
	return s
}
