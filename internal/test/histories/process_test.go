package histories

import (
	"encoding/base64"
	"encoding/binary"
	"maps"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/base/knobs"
	"github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/internal/client/texts"
	"github.com/redlock-go/redlock/internal/wire/token"
)

// process is a client under test, from before it is made. Each of its tokens tells whose it is, and
// when it was drawn.
type process struct {
	owners *owners
	number uint32
	who    string
	tail   string // of its values, behind the tokens
	drawn  atomic.Uint32
	client *redlock.Client

	// Guarded by the owners.
	given    int       // locks that callers may have, whom user code keeps from saying so
	ending   time.Time // when its Close or Shutdown was called
	graceful bool      // it was Shutdown
	ended    time.Time // when that had returned

	collected map[claimed]bool // see business
}

func (o *owners) process(who string, cfg *redlock.Config) *process {
	o.mu.Lock()
	defer o.mu.Unlock()
	p := &process{owners: o, number: uint32(len(o.processes)), who: who}
	if cfg.Name != "" {
		p.tail = token.NameMark + cfg.Name
	}
	o.processes = append(o.processes, p)
	knobs.Of(cfg).Rand = p
	return p
}

func (p *process) runs(c *redlock.Client) {
	p.owners.mu.Lock()
	defer p.owners.mu.Unlock()
	p.client = c
}

func (p *process) Read(b []byte) (int, error) {
	binary.BigEndian.PutUint32(b, p.number)
	binary.BigEndian.PutUint32(b[4:], p.drawn.Add(1))
	binary.BigEndian.PutUint64(b[8:], uint64(time.Since(p.owners.began)))
	return len(b), nil
}

// drawer is the process of a value at a key, and when it drew the token; nil: another made it. The
// owners are locked.
func (o *owners) drawer(value string) (p *process, at time.Time) {
	if len(value) < token.Size {
		return nil, at
	}
	b, err := base64.RawURLEncoding.DecodeString(value[:token.Size])
	if err != nil {
		return nil, at
	}
	n, since := binary.BigEndian.Uint32(b), time.Duration(binary.BigEndian.Uint64(b[8:]))
	if int(n) >= len(o.processes) || since < 0 || since > time.Since(o.began) {
		return nil, at
	}
	return o.processes[n], o.began.Add(since)
}

// give notes a lock that a caller may have without saying so, until it is called back: user code blocks.
func (p *process) give() (taken func()) {
	o := p.owners
	o.mu.Lock()
	defer o.mu.Unlock()
	p.given++
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		p.given--
	}
}

// end is Close, or Shutdown, which may be cut off.
func (p *process) end(graceful bool, end func() error) {
	o := p.owners
	o.mu.Lock()
	if p.ending.IsZero() {
		p.ending, p.graceful = time.Now(), graceful
	}
	o.mu.Unlock()
	err := end()
	o.mu.Lock()
	defer o.mu.Unlock()
	p.graceful = p.graceful && err == nil
	if p.ended.IsZero() {
		p.ended = time.Now()
	}
}

func (p *process) isEnding() (ends, graceful bool) {
	p.owners.mu.Lock()
	defer p.owners.mu.Unlock()
	return !p.ending.IsZero(), p.graceful
}

// business is what a client has to do yet, as the test does not know it.
type business struct {
	owed map[string]bool // nodes, by address: they owe it replies, or are owed releases
	// busy: operations are under way, and a lock may be acquired in one group after another; or nodes owe
	// waiting callers an answer about a queue, and a lock may be handed to them meanwhile.
	busy bool
	// collected are locks that it keeps alive, or did, while a set is taking its keys one by one: one of these that is lost
	// meanwhile is given back with the others.
	collected map[claimed]bool
}

// business is that of now. What is owed becomes an operation, an operation becomes a lock, and the other way round, so it
// is looked at before and after.
func (p *process) business() business {
	b := business{owed: map[string]bool{}, collected: map[claimed]bool{}}
	p.inside(&b)
	s := p.client.Stats()
	for _, n := range s.Nodes {
		b.owed[n.Addr] = b.owed[n.Addr] || n.InFlight > 0
	}
	b.busy = b.busy || s.Waiting > 0 || s.InFlight > 0
	p.inside(&b)
	return b
}

// inside adds what Stats does not show.
func (p *process) inside(b *business) {
	s := (*client.Client)(reflect.ValueOf(p.client).Elem().FieldByName("client").UnsafePointer()).Snapshot()
	b.busy = b.busy || s.Asks || s.Several
	for _, addr := range s.Owed {
		b.owed[addr] = true
	}
	p.owners.mu.Lock()
	defer p.owners.mu.Unlock()
	if !s.Several {
		p.collected = nil
		return
	}
	for _, h := range s.Kept {
		for _, key := range h.Keys() {
			if p.collected == nil {
				p.collected = map[claimed]bool{}
			}
			p.collected[claimed{key, texts.Digest([]byte(h.Value()))}] = true
		}
	}
	maps.Copy(b.collected, p.collected)
}
