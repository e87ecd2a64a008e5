package engine

import (
	"github.com/redlock-go/redlock/internal/fencing"
	"github.com/redlock-go/redlock/quorum"
	"github.com/redlock-go/redlock/resp"
)

// Observer learns what a driver comes to know beside the results of operations. These are all calls
// upwards under the driver lock, but for operations that call their Completion and Repairer there.
// They do not block, and run no user code.
type Observer interface {
	// NodeChanged learns what has changed about a node; a is its answer for NoVote.
	NodeChanged(node int, c Change, a fencing.Answer)
	// KeyChanged learns that nodes may have another value at a key than before. Own, it
	// is this engine that has released the key there; else a node has pushed it. A nil key is all keys.
	KeyChanged(nodes quorum.Set, key []byte, own bool)
}

// Change is what has changed about a node.
type Change uint8

const (
	Up     Change = 1 + iota // it has a new connection, on which nothing was sent
	Down                     // its connection has ended, or its first dial has failed
	NoVote                   // it has no vote in fenced acquires, or belongs to another fleet
)

// deaf is the Observer of an engine without one.
type deaf struct{}

func (deaf) NodeChanged(int, Change, fencing.Answer) {}
func (deaf) KeyChanged(quorum.Set, []byte, bool)     {}

// NodeUp is called when a node has a new connection, on which nothing was sent. The hints are sent
// before anything else. The driver lock is held.
func (e *Engine) NodeUp(node int) {
	e.observer.NodeChanged(node, Up, fencing.Answer{}) // it may set the node's form, which hints need
	h := &e.hints[node]
	h.met, h.out = true, false
	e.handOff(node)
}

// NodeDown is called when a node has no connection any more, or none at first. The driver lock is
// held.
func (e *Engine) NodeDown(node int) { e.observer.NodeChanged(node, Down, fencing.Answer{}) }

// Pushed is called for each push of a node. One of another kind than that of changed keys has no
// meaning here. The driver lock is held.
func (e *Engine) Pushed(node int, v *resp.Value) {
	it := v.Elements()
	if !it.Next() || string(it.Value().Bytes) != "invalidate" || !it.Next() {
		return
	}
	keys, at := *it.Value(), quorum.Only(node)
	if keys.Null { // the node has dropped all keys
		e.observer.KeyChanged(at, nil, false)
		return
	}
	for it := keys.Elements(); it.Next(); {
		e.observer.KeyChanged(at, it.Value().Bytes, false)
	}
}
