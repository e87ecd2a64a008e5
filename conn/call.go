package conn

import (
	"sync/atomic"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/quorum"
	"github.com/redlock-go/redlock/resp"
)

// isCommand reports whether b is one command and nothing else, and may share a connection. Any other number of replies
// would give a caller those of another.
func isCommand(b []byte) bool {
	words, b := header(b, resp.Array)
	if words < 1 {
		return false
	}
	for first := true; words > 0; words-- {
		n, rest := header(b, resp.Bulk)
		if n < 0 || len(rest) < n+2 || rest[n] != '\r' || rest[n+1] != '\n' || first && keepsAConnection(rest[:n]) {
			return false
		}
		b, first = rest[n+2:], false
	}
	return len(b) == 0
}

// keeping are commands that change a connection for all its callers, or keep it until something happens. Others that block
// do so by an argument.
var keeping = map[string]bool{
	"SELECT": true, "MULTI": true, "EXEC": true, "DISCARD": true, "WATCH": true, "UNWATCH": true, "SUBSCRIBE": true,
	"PSUBSCRIBE": true, "SSUBSCRIBE": true, "UNSUBSCRIBE": true, "PUNSUBSCRIBE": true, "SUNSUBSCRIBE": true, "MONITOR": true,
	"SYNC": true, "PSYNC": true, "RESET": true, "QUIT": true, "HELLO": true, "AUTH": true, "BLPOP": true, "BRPOP": true,
	"BRPOPLPUSH": true, "BLMOVE": true, "BLMPOP": true, "WAIT": true, "WAITAOF": true, "BZPOPMIN": true, "BZPOPMAX": true, "BZMPOP": true,
}

func keepsAConnection(word []byte) bool {
	var upper [16]byte // on the stack
	if len(word) > len(upper) {
		return false
	}
	for i, c := range word {
		if 'a' <= c && c <= 'z' {
			c -= 'a' - 'A'
		}
		upper[i] = c
	}
	return keeping[string(upper[:len(word)])]
}

// header reads "*n\r\n" or "$n\r\n". n is -1 where there is none.
func header(b []byte, kind resp.Kind) (n int, rest []byte) {
	if len(b) == 0 || resp.Kind(b[0]) != kind {
		return -1, nil
	}
	i := 1
	for ; i < len(b) && i < 11 && b[i] >= '0' && b[i] <= '9'; i++ {
		n = 10*n + int(b[i]-'0')
	}
	if i == 1 || len(b) < i+2 || b[i] != '\r' || b[i+1] != '\n' || i > 2 && b[1] == '0' { // servers take no leading zero
		return -1, nil
	}
	return n, b[i+2:]
}

// call is one Do. Its caller and its round hold it, and the last to leave frees it. The caller reads the answers that
// have come, without a lock: they do not change any more.
type call struct {
	buf     []byte
	answers []answer     // in the order of arrival
	come    atomic.Int32 // of them; the holder of the lock adds
	holders atomic.Int32
	gone    atomic.Bool   // the caller
	done    chan struct{} // holds one: as many as the caller waits for have come

	// Of the holder of the lock:
	round  *round
	enough int32 // the caller is woken at so many
	wants  bool  // it waits for them

	// Of the caller:
	heard   quorum.Set
	decoder resp.Decoder
	value   resp.Value
}

// answer is one node's.
type answer struct {
	node  int
	err   error
	frame []byte
}

func (d *driver) newCall(command []byte) *call {
	c, _ := d.calls.Get().(*call)
	if c == nil {
		n := d.fleet.Len()
		c = &call{answers: make([]answer, n), done: make(chan struct{}, 1), decoder: newDecoder(d.fleet.cfg.MaxReply)}
		frames := make([]byte, n*usualReply)
		for i := range c.answers {
			c.answers[i].frame = frames[i*usualReply : i*usualReply : (i+1)*usualReply]
		}
	}
	c.buf = append(c.buf[:0], command...)
	c.holders.Store(2)
	c.come.Store(0)
	c.gone.Store(false)
	c.heard, c.enough, c.wants = 0, int32(d.majority), true
	select {
	case <-c.done: // of a caller that had not waited for it
	default:
	}
	return c
}

const (
	keepCall   = 4 << 10 // bounds a buffer of a call that is used again
	usualReply = 64
)

func (d *driver) free(c *call) {
	if c.holders.Add(-1) > 0 {
		return
	}
	if cap(c.buf) > keepCall {
		c.buf = nil
	}
	for i := range c.answers {
		a := &c.answers[i]
		a.err = nil
		if cap(a.frame) > keepCall {
			a.frame = nil
		}
	}
	c.value = resp.Value{}
	d.calls.Put(c)
}

// round holds the calls sent in one batch.
type round struct {
	Batch
	d       *driver
	calls   []*call
	sent    clock.Instant
	alone   bool // no other was under way
	heard   bool // a node has answered or failed
	pending int  // calls with too few answers
	wanting int  // callers waiting for more
}

// Reply implements Owner.
func (r *round) Reply(node, i int, _ *resp.Value) error {
	c := r.calls[i]
	a := &c.answers[c.come.Load()]
	a.node, a.err = node, nil
	if !c.gone.Load() {
		a.frame = append(a.frame[:0], r.d.fleet.nodes[node].frame()...)
	}
	r.answered(c)
	return nil
}

// Fail implements Owner.
func (r *round) Fail(node, i int, err error) {
	for _, c := range r.calls[i:] {
		a := &c.answers[c.come.Load()]
		a.node, a.err = node, err
		r.answered(c)
	}
}

// answered counts an answer to c, and wakes its caller if that waits for it.
func (r *round) answered(c *call) {
	r.heard = true
	come := c.come.Add(1)
	if int(come) == r.d.majority {
		r.pending--
		if r.pending == 0 {
			r.d.leaves(r)
		}
	}
	if c.wants && come >= c.enough {
		c.wants = false
		r.wanting--
		if r.wanting == 0 {
			r.d.sated++
		}
		r.d.woken++
		c.done <- struct{}{} // never blocks: it is empty while the caller waits
	}
}

// Done implements Owner.
func (r *round) Done() {
	r.d.sated--
	for i, c := range r.calls {
		c.round = nil
		r.d.free(c)
		r.calls[i] = nil
	}
	r.calls = r.calls[:0]
	if cap(r.Buf) > keepRound {
		r.Buf = nil
	}
	r.d.rounds = append(r.d.rounds, r)
}
