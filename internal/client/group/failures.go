package group

import (
	"errors"
	"time"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/client/texts"
	"github.com/redlock-go/redlock/internal/rules/quarantine"
	"github.com/redlock-go/redlock/quorum"
)

// sentinels are the results distinguished by callers. No node's failure may be taken for one.
var sentinels = []error{
	engine.ErrTaken, engine.ErrSplit, engine.ErrNoQuorum, engine.ErrExpired, engine.ErrNotHeld, engine.ErrClosed, engine.ErrBusy,
	engine.ErrStopped, engine.ErrNoAnswer, engine.ErrArgument, engine.ErrConfig, texts.ErrForgotten,
}

// misconfigured returns the error of unfit nodes, or of all nodes if all refuse for a lasting reason; or nil. With
// fencing one node is enough that cannot take part in it: it would have no vote for good.
func misconfigured(nodes []conn.Node, fenced, joint bool) error {
	var refusing, unfenced []error
	for _, n := range nodes {
		if n.Unfit {
			if errors.Is(n.Err, conn.ErrSameServer) && joint {
				return texts.WrongConfig(texts.InConfig, n.Err, errTwoNames)
			}
			return texts.WrongConfig(texts.InConfig, n.Err)
		}
		if n.Lasting {
			refusing = append(refusing, n.Err)
		}
		if fenced && (errors.Is(n.Err, conn.ErrUnscripted) || errors.Is(n.Err, conn.ErrForbidden) || errors.Is(n.Err, conn.ErrNoRunID) || errors.Is(n.Err, conn.ErrTooOld)) {
			unfenced = append(unfenced, n.Err)
		}
	}
	switch {
	case len(refusing) == len(nodes):
		text := texts.InConfig
		if len(nodes) > 1 {
			text += "no node can be used: "
		}
		return texts.WrongConfig(text, refusing...)
	case len(unfenced) > 0:
		return texts.WrongConfig(texts.InConfig+"nodes cannot take part in fencing: ", unfenced...)
	}
	return nil
}

var errTwoNames = errors.New("write one name for a server in Nodes and NextNodes")

// Failures returns why votes on an operation have failed. The engine has one error for each reason common to all
// operations, so a failed vote allocates nothing; here the errors have all details.
func (g *Group) Failures(op *engine.Op) []engine.Failure {
	full := make([]engine.Failure, len(op.Failures))
	for i, f := range op.Failures {
		full[i] = f
		if f.IsTimeout() {
			full[i].Err = texts.Because(f.Err, "no answer within %v (NodeTimeout)", op.Timeout)
		} else if f.Err == conn.ErrQuarantined {
			full[i].Err = g.whyQuarantined(f.Node, op)
		}
	}
	return full
}

// withdrawn is why a node has no vote. It outlives the lock under which it was read.
type withdrawn struct {
	memory quarantine.Memory
	uptime time.Duration // of the server, at since
	since  clock.Instant
}

// whyQuarantined is the reason why a node had no vote on an operation, with the time left.
func (g *Group) whyQuarantined(node int, op *engine.Op) error {
	q := g.quarantines[node].Load()
	if q == nil {
		return conn.ErrQuarantined
	}
	now, life := g.Config.Clock.Now(), time.Duration(0)
	if op.OfTerm {
		life = op.TTL + quorum.Drift(op.TTL)
	}
	left := max(time.Millisecond, q.memory.Due(life).Sub(now)) // no vote was counted, so it is not over
	if left < time.Second {
		left = left.Round(time.Millisecond)
	} else {
		left = left.Round(time.Second)
	}
	up := (q.uptime + now.Sub(q.since)).Round(time.Second)
	switch q.memory.Cause {
	case quarantine.Promoted:
		return texts.Because(conn.ErrQuarantined, "it was a replica, and may have the data of another server: no vote for %v", left)
	case quarantine.Unmet:
		return texts.Because(conn.ErrQuarantined, "up for %v, MaxTTL is %v: no vote for %v", up, g.Config.longest, left)
	}
	return texts.Because(conn.ErrQuarantined, "restarted, up for %v: no vote for %v", up, left)
}

// Explain returns err, of an operation or of the whole decided by it, as the API shows it. Only an error without a
// quorum has details, and allocates.
func (g *Group) Explain(op *engine.Op, err error) error {
	if err != engine.ErrNoQuorum {
		return err
	}
	return g.Config.QuorumError(g, op)
}

// Lacking returns the lists without a quorum for an operation, since nodes have failed; both are false without
// NextNodes.
func (g *Group) Lacking(op *engine.Op) Lists {
	if g.Config.members.Next == nil {
		return Lists{}
	}
	failed := op.Tally.Nodes(quorum.Failed)
	lists := g.Config.members.blocked(failed)
	if lists == (Lists{}) { // together with nodes without the key
		lists = g.Config.members.blocked(failed | op.Tally.Nodes(quorum.Denied))
	}
	return lists
}
