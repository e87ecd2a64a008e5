package engine

import (
	"sync"

	"github.com/redlock-go/redlock/internal/rules/fencing"
	"github.com/redlock-go/redlock/quorum"
	"github.com/redlock-go/redlock/resp"
)

// DriverLock is the lock of the fleet's owner.
func (e *Engine) DriverLock() sync.Locker { return (*driverLock)(&e.driver) }

// driverLock is the driver lock for dialers. Like each holder, they drive after they have unlocked it, for operations
// submitted meanwhile.
type driverLock driver

func (lock *driverLock) Lock() { lock.lock.Lock() }

func (lock *driverLock) Unlock() {
	(*driver)(lock).unlock(false)
	(*driver)(lock).drive(lone{})
}

// NodeUp is called when a node has a new connection, before anything is sent on it. The hints go first. The driver
// lock is held.
func (e *Engine) NodeUp(node int) {
	e.ledger.observer.NodeChanged(node, Up, fencing.Answer{}) // it may set the node's form, which hints need
	e.ledger.up(node)
}

// NodeDown is called when a node has no connection any more, or none at first. The driver lock is
// held.
func (e *Engine) NodeDown(node int) { e.ledger.observer.NodeChanged(node, Down, fencing.Answer{}) }

// Pushed is called for each push of a node. Pushes of another kind than changed keys have no meaning here. The driver
// lock is held.
func (e *Engine) Pushed(node int, v *resp.Value) {
	it := v.Elements()
	if !it.Next() || string(it.Value().Bytes) != "invalidate" || !it.Next() {
		return
	}
	keys, at := *it.Value(), quorum.Only(node)
	if keys.Null { // the node has dropped all keys
		e.ledger.observer.KeyChanged(at, nil, false)
		return
	}
	for it := keys.Elements(); it.Next(); {
		e.ledger.observer.KeyChanged(at, it.Value().Bytes, false)
	}
}

// Notify has an event reported by the goroutine of callbacks. The driver lock is held: its holder wakes that goroutine
// when giving it up.
func (e *Engine) Notify(event Event) { e.callbacks.add(event) }

// Inform is Notify for callers without the driver lock. It does not wait for it: they may hold a lock by now.
func (e *Engine) Inform(event Event) {
	e.callbacks.add(event)
	e.callbacks.wake()
}
