package histories

import (
	"fmt"
	"time"

	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit/virtual"
)

type troublemaker struct {
	*history
	random
}

// fault begins, and returns its undoing, or nil if it is over at once.
type fault struct {
	name  string
	most  time.Duration // for how long
	begin func(t troublemaker) (undo func())
}

var faults = []fault{
	{"restart", time.Second, (troublemaker).restart},
	{"restart empty", time.Second, (troublemaker).restartEmpty},
	{"freeze", time.Second, func(t troublemaker) func() { return t.standing((*fakeredis.Server).Hang) }},
	{"unread", time.Second, func(t troublemaker) func() { return t.standing((*fakeredis.Server).HangUnread) }},
	{"mute", time.Second, func(t troublemaker) func() { return t.standing((*fakeredis.Server).Mute) }},
	{"slow", 2 * time.Second, func(t troublemaker) func() {
		d := 10*time.Millisecond + t.N(40*time.Millisecond)
		return t.standing(func(s *fakeredis.Server) { s.Delay(d) })
	}},
	{"pushes", 2 * time.Second, func(t troublemaker) func() {
		f := fakeredis.PushFault{Drop: t.Float64(), Double: t.Float64(), Delay: t.N(time.Second)}
		return t.standing(func(s *fakeredis.Server) { s.FaultPushes(f) })
	}},
	{"forged", 0, (troublemaker).forge},
	{"scripts", 0, func(t troublemaker) func() { t.server().FlushScripts(); return nil }},
	{"resets", 0, func(t troublemaker) func() { t.server().ResetConns(); return nil }},
	{"reset", 0, func(t troublemaker) func() { t.link().Reset(); return nil }},
	{"late bytes", 0, func(t troublemaker) func() { t.link().CutOff(t.N(3 * time.Second)); return nil }},
	{"black hole", 0, func(t troublemaker) func() { t.link().Lose(); return nil }},
	{"partition", 2 * time.Second, (troublemaker).partition},
	{"one way", 200 * time.Millisecond, (troublemaker).oneWay},
	{"refused", time.Second, (troublemaker).refused},
	{"suspend", 3 * time.Second, (troublemaker).suspend},
	{"leftover", 0, (troublemaker).leftover},
	{"unfit", 2 * time.Second, func(t troublemaker) func() {
		text := refusals[t.IntN(len(refusals))]
		return t.standing(func(s *fakeredis.Server) { refuse(s, text) })
	}},
	{"releases refused", time.Second, func(t troublemaker) func() {
		text, n := codes[t.IntN(len(codes))], 1+t.IntN(3)
		return t.standing(func(s *fakeredis.Server) {
			for _, name := range []string{"EVALSHA", "DELIFEQ", "DELEX"} {
				s.ErrorReply(name, text, n)
			}
		})
	}},
	{"no queue", 2 * time.Second, (troublemaker).noQueue},
	{"others flush", 0, func(t troublemaker) func() { t.server().FlushOther(); return nil }},
}

// refusals are errors of a running node that does not write.
var refusals = []string{
	"OOM command not allowed when used memory > 'maxmemory'.",
	"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
	"LOADING Redis is loading the dataset in memory",
}

// refuse has a node write nothing.
func refuse(s *fakeredis.Server, text string) {
	s.ErrorReply("SET", text, 1<<30)
	s.ErrorReply("EVALSHA", text, 1<<30)
}

// codes are errors that a node may answer once. WRONGTYPE is none of them: it shows that the key holds no lock.
var codes = append([]string{
	"NOPERM this user has no permissions to run the command",
	"ERR internal error",
	"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
	"NOSCRIPT No matching script. Please use EVAL.",
	"READONLY You can't write against a read only replica.",
	"TRYAGAIN Multiple keys request during rehashing of slot",
	"CLUSTERDOWN The cluster is down",
	"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
	"NOREPLICAS Not enough good replicas to write.",
	"UNHEARDOF something",
}, refusals...)

// trouble makes faults until the calm begins.
func (h *history) trouble(i int) {
	t := troublemaker{h, h.rng(5, i)}
	for end := time.Now().Add(h.faulty); time.Now().Before(end) && h.pause(t.N(400*time.Millisecond)); {
		f := faults[t.IntN(len(faults))]
		d := time.Duration(0)
		if f.most > 0 {
			d = t.N(f.most)
		}
		h.log("fault: %s for %v", f.name, d)
		h.faults(1)
		if undo := f.begin(t); undo != nil {
			h.pause(d)
			undo()
		}
		h.faults(-1)
	}
}

func (h *history) faults(d int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.standing += d
	h.fault = time.Now()
}

// troubled is when a fault was in force last; zero: there was none.
func (h *history) troubled() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.standing > 0 {
		return time.Now()
	}
	return h.fault
}

func (t troublemaker) node() int                 { return t.IntN(len(t.Servers)) }
func (t troublemaker) server() *fakeredis.Server { return t.Servers[t.node()] }

func (t troublemaker) machine() *virtual.Machine {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.machines[t.IntN(len(t.machines))]
}

func (t troublemaker) link() *virtual.Link {
	addr := t.Nodes[t.node()]
	if m := t.machine(); m != nil {
		return m.Link(addr)
	}
	return t.Net.Link("none", addr)
}

// standing is a fault of a node, undone by Heal.
func (t troublemaker) standing(begin func(*fakeredis.Server)) func() {
	s := t.server()
	begin(s)
	return func() { t.heal(s) }
}

func (h *history) heal(s *fakeredis.Server) {
	if err := s.Heal(); err != nil {
		h.fail("heal: %v", err)
	}
}

// restart keeps the keys. To fenced clients the node may have come up with older ones.
func (t troublemaker) restart() func() {
	if t.fenced {
		return t.restartEmpty()
	}
	s := t.server()
	s.Down()
	return func() { _ = s.Restart(false) }
}

// restartEmpty keeps to the conditions of quarantine: before most nodes have forgotten, the first
// of them has its vote back.
func (t troublemaker) restartEmpty() func() {
	i := t.node()
	if !t.mayForget(i) {
		return nil
	}
	s := t.Servers[i]
	s.Down()
	return func() {
		t.mayForget(i)
		_ = s.Restart(true)
	}
}

// mayForget notes that a node loses its keys, if it may.
func (h *history) mayForget(node int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	forgotten, now := bit(node), time.Now()
	for i, at := range h.forgot {
		if !at.IsZero() && now.Sub(at) < 2*settle {
			forgotten |= bit(i)
		}
	}
	for _, l := range h.layouts() {
		if joint(l...).Blocks(forgotten) {
			return false
		}
	}
	h.forgot[node] = now
	return true
}

// forgotSince reports whether a node has lost its keys since then.
func (h *history) forgotSince(node int, t time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.forgot[node].IsZero() && h.forgot[node].After(t)
}

func (t troublemaker) forge() func() {
	s := t.server()
	if t.IntN(2) == 0 {
		s.Forge(fakeredis.Flushed)
	} else {
		s.Forge(fakeredis.Invalidation(t.keys[t.IntN(len(t.keys))]))
	}
	return nil
}

func (t troublemaker) partition() func() {
	l := t.link()
	l.Hold(true, true)
	return func() {
		if t.IntN(2) == 0 {
			l.Lose()
		} else {
			l.CutOff(0) // sent messages arrive late
		}
		l.Release()
	}
}

func (t troublemaker) oneWay() func() {
	l := t.link()
	there := t.IntN(2) == 0
	l.Hold(there, !there)
	return l.Release
}

func (t troublemaker) refused() func() {
	l := t.link()
	l.Refuse(true)
	l.Reset()
	return func() { l.Refuse(false) }
}

func (t troublemaker) suspend() func() {
	m := t.machine()
	if m == nil {
		return nil
	}
	m.Suspend()
	return m.Wake
}

// noQueue has a node keep no queue for a key: the queue's name is of another type.
func (t troublemaker) noQueue() func() {
	s, queue := t.server(), t.keys[t.IntN(len(t.keys))]+":redlock:queue"
	s.Plant(queue, "list")
	return func() { s.Del(queue) }
}

// leftover leaves a key on one node, as a dead client does, or an operator without a TTL. There is
// one at a time for each key, so a quorum can be free.
func (t troublemaker) leftover() func() {
	key, node := t.keys[t.IntN(len(t.keys))], t.node()
	t.mu.Lock()
	_, has := t.leftovers[key]
	if !has {
		t.leftovers[key] = node
	}
	t.mu.Unlock()
	if has {
		return nil
	}
	p := &peer{net: t.Net, host: "leftover", addr: t.Nodes[node]}
	defer p.close()
	order := []string{"SET", key, fmt.Sprintf("leftover-%020d", t.Uint64()), "NX"}
	if t.IntN(2) == 0 {
		order = append(order, "PX", fmt.Sprint(1000+t.IntN(20000)))
	}
	line, err := p.do(order...)
	t.log("leftover %s on node %d: %s %v", key, node, line, err)
	return nil
}
