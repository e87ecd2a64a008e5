package histories

import (
	"encoding/base64"
	"encoding/binary"
	"maps"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/base/knobs"
	"github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/internal/client/group"
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
	given    int       // locks granted to callers that are in a hook yet
	ending   time.Time // when its Close or Shutdown was called
	graceful bool      // it was Shutdown
	ended    time.Time // when that had returned
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

// give notes a lock granted to a caller that is in a hook, until it is called back.
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
	owed   map[string]bool  // nodes, by address: they owe it replies, or are owed releases
	hooked map[claimed]bool // locks of callers in hooks
	// busy: operations are under way, and a lock may be acquired in one group after another; or nodes owe
	// waiting callers an answer about a queue, and a lock may be handed to them meanwhile.
	busy bool
}

// business is that of now. What is owed becomes an operation, an operation becomes a lock, and the other way round, so it
// is looked at before and after.
func (p *process) business() business {
	b := p.inside()
	s := p.client.Stats()
	for _, n := range s.Nodes {
		b.owed[n.Addr] = b.owed[n.Addr] || n.InFlight > 0
	}
	b.busy = b.busy || s.Waiting > 0 || s.InFlight > 0
	after := p.inside()
	maps.Copy(b.owed, after.owed)
	maps.Copy(b.hooked, after.hooked)
	return b
}

// inside is what Stats does not show.
func (p *process) inside() business {
	b := business{owed: map[string]bool{}, hooked: map[claimed]bool{}}
	groups := reflect.ValueOf(p.client).Elem().FieldByName("client").Elem().FieldByName("groups")
	for i := range groups.Len() {
		g := (*group.Group)(groups.Index(i).Elem().FieldByName("Group").UnsafePointer())
		g.Engine.DriverLock().Lock()
		e := reflect.ValueOf(g.Engine).Elem()
		for node := range g.Len() {
			if e.FieldByName("rounds").FieldByName("hints").Index(node).FieldByName("all").Len() > 0 {
				b.owed[g.Addr(node)] = true
			}
		}
		q := e.FieldByName("queries")
		b.busy = b.busy || q.FieldByName("asked").Len() > 0 || q.FieldByName("behind").Int() > 0
		g.Engine.DriverLock().Unlock()
		b.addHooked(groups.Index(i).Elem().FieldByName("hooked"))
	}
	return b
}

// addHooked adds the locks of a group's callers in hooks. A caller hears of each of its attempts when the last has
// ended: it may have its lock while it hears of one that was lost.
func (b *business) addHooked(hooked reflect.Value) {
	mu := (*sync.Mutex)(hooked.FieldByName("mu").Addr().UnsafePointer())
	mu.Lock()
	defer mu.Unlock()
	for h := range *(*map[client.Handle]struct{})(hooked.FieldByName("held").Addr().UnsafePointer()) {
		for _, key := range h.Keys() {
			b.hooked[claimed{key, texts.Digest([]byte(h.Value()))}] = true
		}
	}
}
