package client

import (
	"cmp"
	"fmt"
	"time"

	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/client/group"
	"github.com/redlock-go/redlock/internal/client/holding"
	"github.com/redlock-go/redlock/internal/wire/token"
)

// Options are the options of calls. The root package documents them.
type Options struct {
	Wait     time.Duration
	Attempts int
	AtLeast  time.Duration
	Name     string
}

// check refuses values out of their limits.
func (o Options) check(longestTerm time.Duration) error {
	switch {
	case o.Wait < 0 || o.Wait > engine.MaxTTL:
		return fmt.Errorf("option Wait is %v, want 0 (no other limit) to %v", o.Wait, engine.MaxTTL)
	case o.Attempts < 0:
		return fmt.Errorf("option Attempts is %v, want 0 (as Config.Retry) or more", o.Attempts)
	case o.AtLeast < 0:
		return fmt.Errorf("option AtLeast is %v, want 0 (a lock ends with its function) or more", o.AtLeast)
	case o.AtLeast > longestTerm:
		return fmt.Errorf("option AtLeast is %v, at most %v are allowed (with Fenced, MaxTTL)", o.AtLeast, longestTerm)
	}
	return group.CheckName(o.Name)
}

// settings are how the calls of a client ask for locks: checked options. They do not change, and all calls share them.
type settings struct {
	Options
	tail string        // follows the token in their values
	more *holding.More // of their locks, for a name of their own; or nil
	err  error         // what is wrong with the options
}

// with is s with other options. A zero one stays as it is.
func (s *settings) with(o Options, g *site) (next settings) {
	next.Options = Options{
		Wait: cmp.Or(o.Wait, s.Wait), Attempts: cmp.Or(o.Attempts, s.Attempts),
		AtLeast: cmp.Or(o.AtLeast, s.AtLeast), Name: cmp.Or(o.Name, s.Name),
	}
	if err := next.check(longestTerm(g)); err != nil {
		next.err = engine.WrongArgument("%v", err)
	}
	next.tail, next.more = s.tail, s.more // so that locks pass on between callers with the one and the other
	switch next.Name {
	case s.Name:
	case g.Config.Name:
		next.tail, next.more = g.Config.Tail, nil
	default:
		next.tail = token.NameMark + next.Name
		next.more = &holding.More{HasTail: true, Tail: next.tail}
	}
	return next
}

// refusal is the error of options that are wrong, or mean nothing: a lock that has no term ends with its release.
func (s *settings) refusal(hasTerm bool) error {
	if s.err == nil && s.AtLeast > 0 && !hasTerm {
		return errTerm
	}
	return s.err
}

// errTerm refuses Options.AtLeast where it would mean nothing.
var errTerm = engine.WrongArgument("option AtLeast is of Do, TryDo, DoAll and DoAny: no other call keeps a lock after its work")
