package group

import (
	"fmt"
	"time"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/engine"
)

// Failures returns why votes on an operation have failed. The engine names the reasons
// that are the same for all operations by one error each, so that a vote that fails
// allocates nothing; here the errors have all details.
func (g *Group) Failures(op *engine.Op) []engine.Failure {
	full := make([]engine.Failure, len(op.Failures))
	for i, f := range op.Failures {
		if full[i] = f; f.IsTimeout() {
			full[i].Err = &reason{fmt.Sprintf("no answer within %v (NodeTimeout)", op.Timeout), f.Err}
		} else if f.Err == conn.ErrQuarantined {
			full[i].Err = g.whyGuarded(f.Node)
		}
	}
	return full
}

// reason is an error with a better text.
type reason struct {
	text string
	err  error
}

func (r *reason) Error() string { return r.text }
func (r *reason) Unwrap() error { return r.err }

// whyGuarded is the reason why a node has no vote, with the time that is left.
func (g *Group) whyGuarded(node int) error {
	guard := g.fleet.Guard(node)
	if guard == nil {
		return conn.ErrQuarantined
	}
	now := g.clock.Now()
	left := max(time.Second, (guard.Until - now).Round(time.Second)) // no vote was counted, so it is not over
	up := (guard.Uptime + now - guard.Since).Round(time.Second)
	text := fmt.Sprintf("restarted, up for %v: no vote for %v", up, left)
	if guard.New {
		text = fmt.Sprintf("up for %v, MaxTTL is %v: no vote for %v", up, g.cfg.Engine.MaxTTL, left)
	}
	return &reason{text, conn.ErrQuarantined}
}
