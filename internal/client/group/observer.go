package group

import (
	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/rules/fencing"
	"github.com/redlock-go/redlock/quorum"
)

// observer is a Group as its engine's Observer: it passes on what a driver finds out.
type observer Group

// NodeChanged implements engine.Observer.
func (o *observer) NodeChanged(node int, c engine.Change, a fencing.Answer) {
	switch g := (*Group)(o); c {
	case engine.Up:
		g.waiters.Up(node, g.Up(node))
	case engine.Down:
		g.waiters.Down(node)
		g.Down(node)
	case engine.NoVote:
		g.fence.NoVote(node, a)
	}
}

// KeyChanged implements engine.Observer.
func (o *observer) KeyChanged(nodes quorum.Set, key []byte, own bool) {
	o.waiters.KeyChanged(nodes, key, own)
}
