package engine

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
)

// aloneFor is how long a lone caller waits in the kernel for its own replies before it parks as others do. In this time
// no other goroutine can be the driver. A shorter time would cost more. A timer due before the kernel's next tick is
// programmed into the hardware for each wait, and this takes microseconds in a virtual machine: with 300 us in its
// place a lone caller's median was 387 us instead of 330 us.
const aloneFor = 5 * time.Millisecond

// keptFor is how long lone callers wait in the kernel, one wait after another, before one parks. A goroutine that waits
// there keeps its processor, unless the runtime notices, and the runtime looks every 10 ms. So with one processor a
// caller in a loop would keep all other goroutines from theirs: an echo on another connection took 18 ms. When it parks
// they have it, and the network is polled for them. It is not shorter because each park costs CPU: with 500 us in its
// place a pair of a lone caller cost 1.3 times as much.
const keptFor = 2 * time.Millisecond

// lone is a goroutine reading the replies to its own operations, if no others are under way: a caller, or the
// goroutine of callbacks. The zero lone has none.
type lone struct {
	own   int64         // how many
	done  chan struct{} // has something once there is more to do than to read
	limit Limit         // of the caller
	from  clock.Instant
	span  time.Duration // how long it reads, from then on
}

// readAlone lets the holder of the driver lock read its own replies, provided no other operation is under way. An
// operation submitted meanwhile waits for a closed window as always. Where the window is open, on a slow network, its
// submitter wakes the reader. This one then sends what there is and leaves the rest to the reader goroutine. It returns
// false if another goroutine has the driver lock.
//
// Goroutines that are ready to run do so first: they may be about to submit. With one processor they would have to wait
// for this caller, time and again. The lock is free meanwhile, and no reader is woken by replies: the goroutine that
// has the lock next arms the fleet when it unlocks, unless it is this one.
//
// No newcomer can be missed: it pushes and then reads d.lone, and here that is set before the queue is looked at.
func (d *driver) readAlone(by lone) (isDriver bool) {
	if d.queue.depth.Load() != by.own {
		return true
	}
	d.lone.Store(by.own == 1)
	if !d.nodes.CanBlock() || d.peers.crowd(&d.queue.depth) {
		return true
	}
	if d.keeping >= keptFor {
		d.keeping = 0
		return true
	}
	d.lock.Unlock()
	runtime.Gosched()
	if !d.lock.TryLock() {
		return false
	}
	if d.queue.depth.Load() != by.own {
		return true
	}
	d.alone.Store(true)
	defer d.alone.Store(false)
	if at := by.limit.At; at != 0 {
		by.span = min(by.span, at.Sub(by.from))
	}
	left, now := by.span, by.from
	for len(by.done) == 0 && left > 0 && !IsClosed(by.limit.Done) && d.nodes.CanBlock() {
		d.flush()
		if d.ledger.window.isOpen.Load() && d.queue.depth.Load() > by.own {
			break
		}
		d.nodes.Sweep(max(0, min(left, d.ledger.limitAt.Sub(now))))
		d.ledger.complete()
		if d.callbacks.waiting.Load() > 0 {
			d.callbacks.wake() // this goroutine may keep the lock for long
		}
		now = d.nodes.clock.Now()
		left = by.span - now.Sub(by.from)
	}
	d.keeping += by.span - left
	return true
}

// Peers is the engines of one client: one for each of its groups. It is complete before the first
// operation is submitted. A nil Peers is one engine alone.
type Peers struct {
	procs  int64 // GOMAXPROCS
	depths []*atomic.Int64
}

// NewPeers is Peers without an engine. New adds the engine it makes.
func NewPeers() *Peers { return &Peers{procs: int64(runtime.GOMAXPROCS(0))} }

func (p *Peers) add(depth *atomic.Int64) {
	if p != nil {
		p.depths = append(p.depths, depth)
	}
}

// crowd reports whether the other engines, all but the one of own, have an operation under way for each processor, or
// more: a caller waiting in the kernel keeps a processor from theirs.
func (p *Peers) crowd(own *atomic.Int64) bool {
	if p == nil || len(p.depths) == 1 {
		return false
	}
	others := -own.Load()
	for _, depth := range p.depths {
		others += depth.Load()
	}
	return others >= p.procs
}
