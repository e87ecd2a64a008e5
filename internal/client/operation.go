package client

import (
	"errors"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/client/engine"
)

// siteOf is the site of an engine.
func siteOf(e *engine.Engine) *site { return e.Site.(*site) }

// metOldNews reports whether an acquire has failed for what had happened before, unread: a server had closed the
// connection while it was idle, or had lost all keys. It may have been applied, so it is not sent again: another one may be.
func metOldNews(calls *engine.Call) (met bool) {
	calls.Each(func(c *engine.Call) {
		for _, f := range c.Failures {
			met = met || c.Asked && (errors.Is(f.Err, conn.ErrIdle) || errors.Is(f.Err, conn.ErrEmptied))
		}
	})
	return met
}

// stands notes an acquire that has won, and reports whether this process may take the lock. It may not if a younger
// grant is known, or if an older lock was passed on to a holder meanwhile.
func stands(calls *engine.Call) bool {
	for c := calls; c != nil; c = c.And {
		if !siteOf(c.On).lines.Granted(c.KeyText(), c.Serial, c.Shared) {
			return false
		}
	}
	return true
}

// granted reports to the fences which nodes have granted an acquire.
func granted(calls *engine.Call) {
	calls.Each(func(c *engine.Call) { siteOf(c.On).Fence.Granted(&c.Op) })
}

// denied is the call for the key at a place, if nodes have denied it, or nil. A key with split votes is so
// only where no other key is taken, and its rounds are used up: until then no holder of it was seen.
func denied(calls *engine.Call, place int) *engine.Call {
	_, err := calls.Result()
	c := calls
	for range place {
		c = c.And
	}
	if c.Asked && c.Err == err && (errors.Is(err, engine.ErrTaken) || err == engine.ErrSplit) {
		return c
	}
	return nil
}
