package fakeredis

import (
	"sync"
	"time"
)

// outbox holds the replies of a slow server until they are due. It models the latency of a long
// line, not of a busy server: each batch leaves a fixed time after the arrival of its bytes,
// however many are under way.
//
// The delivering goroutine lives only while something is owed.
type outbox struct {
	mu      sync.Mutex
	parcels []parcel
	active  bool
}

type parcel struct {
	due  time.Time
	data []byte
	how  ending
}

// busy reports whether replies are owed. Later ones must not overtake them.
func (o *outbox) busy() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.active
}

func (o *outbox) put(c *conn, p parcel) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.parcels = append(o.parcels, p)
	if !o.active {
		o.active = true
		c.srv.running.Add(1)
		go o.deliver(c)
	}
}

func (o *outbox) deliver(c *conn) {
	defer c.srv.running.Done()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		p, ok := o.take()
		if !ok {
			return
		}
		timer.Reset(time.Until(p.due))
		select {
		case <-timer.C:
		case <-c.done:
			return
		}
		if !c.send(p.data, p.how) {
			c.end(endClose)
			return
		}
	}
}

// take removes the first parcel, or closes shop if there is none.
func (o *outbox) take() (parcel, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.parcels) == 0 {
		o.active = false
		return parcel{}, false
	}
	p := o.parcels[0]
	o.parcels = o.parcels[1:]
	return p, true
}
