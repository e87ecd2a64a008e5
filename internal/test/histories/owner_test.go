package histories

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/client/texts"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
)

// owners knows to whom each lock key at a node belongs: to a live handle, an attempt or a release
// under way, or a hint. It finds out what was granted twice, or to none:
//
//   - a key at a node has an owner (look);
//   - of the locks on a key granted to a process the youngest alone passes on (granted);
//   - a key is called taken only if some node had it (taken).
type owners struct {
	servers  fakeredis.Servers
	began    time.Time
	keys     []string
	troubled func() (last time.Time) // the last fault: now, while one is in force; zero: there was none
	fail     func(format string, args ...any)

	mu        sync.Mutex
	processes []*process
	sights    map[place]*sight
	claims    map[claimed]*claim
	young     map[held][]*claim    // the last claims of a process on a key
	present   map[string]time.Time // when some node had a key last
	believed  map[string]time.Time // until then a holder that the test does not know yet may believe in a freed key
}

type place struct {
	key    string
	node   int
	member string // of a shared lock: a holder's value
}

// sight is a value at a place, since it was written there.
type sight struct {
	value   string
	of      claimed
	process *process  // that has drawn it; nil: none of ours
	late    bool      // it came later than its attempt was sent: its connection may have been given up
	since   time.Time // since when it has no owner; zero: it has one
	term    time.Time // until then it stays, by a release that has reached the node by now (Options.AtLeast)
	alone   int       // how often it was seen without an owner, while its process had nothing under way
}

// claimed is a value at a key.
type claimed struct{ key, digest string }

// claim is a lock on a key, through all the handles of one token.
type claim struct {
	process *process
	since   time.Time     // when it was granted first
	good    bool          // it was valid then
	held    bool          // some caller has it
	left    time.Time     // when its last holder began to give it back
	freed   bool          // by an operator
	stay    time.Duration // how long it was to stay then (Options.AtLeast)
	term    time.Time     // until then it has an owner, where its release arrives at once
	others  []*process    // that have released it by handles of their own: they may owe the release
}

// held is a key of a process.
type held struct {
	process *process
	key     string
}

const (
	// orphaned is how long a node that works may keep the key of a lock that is over.
	orphaned = 250 * time.Millisecond
	// onTheWay bounds the way of a message from a client that has been closed.
	onTheWay = 50 * time.Millisecond
	// sent is how late an attempt reaches a node whose connection works.
	sent = 2 * time.Millisecond
	// unsettled is how long a fault may have effects on a client: a silent connection is found after a
	// second, and then dialed again.
	unsettled = 3 * time.Second
	// youngest is how many claims are remembered.
	youngest = 8
)

func (o *owners) init(servers fakeredis.Servers, keys []string, troubled func() time.Time, fail func(string, ...any)) {
	o.servers, o.began, o.troubled, o.fail = servers, time.Now(), troubled, fail
	o.keys = keys
	o.sights, o.claims, o.young, o.present, o.believed = map[place]*sight{}, map[claimed]*claim{}, map[held][]*claim{}, map[string]time.Time{}, map[string]time.Time{}
	for node, s := range servers {
		s.OnWrite(func(key, value string) { o.wrote(node, key, value) })
	}
}

// wrote notes a value at the moment a node stores it.
func (o *owners) wrote(node int, key, value string) {
	if !slices.Contains(o.keys, key) {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	o.present[key] = now
	s := &sight{value: value, of: claimed{key, texts.Digest([]byte(value))}}
	if !strings.HasPrefix(value, "leftover-") && !strings.HasPrefix(value, "foreign") {
		s.drawn(o, now)
	}
	o.sights[place{key: key, node: node}] = s
}

// drawn finds out whose a value is that a node has had since now at the earliest. The owners are locked.
func (s *sight) drawn(o *owners, now time.Time) {
	var at time.Time
	s.process, at = o.drawer(s.value)
	c := o.claims[s.of]
	s.late = now.Sub(at) > sent && (c == nil || !c.held) // else it is repaired
}

// claim is that of a value at a key. The owners are locked.
func (o *owners) claim(of claimed) *claim {
	c := o.claims[of]
	if c == nil {
		c = new(claim)
		o.claims[of] = c
	}
	return c
}

// granted notes that b has a key for so long. It may have been passed on to b inside its process:
// then no other lock on the key was granted there since.
func (o *owners) granted(key string, b *holding, left time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	o.present[key] = now
	if b.digest == "" {
		return
	}
	c, at := o.claim(claimed{key, b.digest}), held{b.process, key}
	if c.since.IsZero() {
		c.process, c.since, c.good = b.process, now, left > 0 && !c.freed
		if c.good {
			list := append(o.young[at], c)
			o.young[at] = list[max(0, len(list)-youngest):]
		}
	} else if b.process != nil {
		for _, younger := range o.young[at] {
			if younger != c && younger.since.After(c.since) && younger.since.Before(c.left) && left > 0 {
				o.fail("%s was handed the lock on %s of %.4f s, though its process was granted it at %.4f s, before it was given back at %.4f s",
					b.who, key, o.at(c.since), o.at(younger.since), o.at(c.left))
			}
		}
	}
	c.held, c.left = true, time.Time{}
}

// leaves notes that the holder of b begins to give it back.
func (o *owners) leaves(b *holding) { o.set(b, false) }

// staysFor notes that the holder of b begins to give it back, and that its keys stay for d yet.
func (o *owners) staysFor(b *holding, d time.Duration) {
	o.set(b, false)
	if d <= 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, key := range b.keys {
		c := o.claim(claimed{key, b.digest})
		c.stay, c.term = d, time.Now().Add(d+orphaned)
	}
}

// stays notes that it was not given back: nothing was sent.
func (o *owners) stays(b *holding) { o.set(b, true) }

func (o *owners) set(b *holding, held bool) {
	if b.digest == "" {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, key := range b.keys {
		c := o.claim(claimed{key, b.digest})
		switch {
		case held:
			c.left = time.Time{}
		case c.left.IsZero():
			c.left = time.Now()
		}
		c.held = held
	}
}

// free notes that an operator is about to free a key of this value. From now on its holder has no
// claim, though it may believe so.
func (o *owners) free(key, value string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c := o.claim(claimed{key, texts.Digest([]byte(value))})
	c.freed = true
	if !c.held { // its caller is in a hook, or about to return
		o.believed[key] = time.Now().Add(maxTTL)
	}
}

// attached notes that a process is about to release a lock by a handle of its own.
func (o *owners) attached(key, value string, c *redlock.Client) {
	o.mu.Lock()
	defer o.mu.Unlock()
	of := o.claim(claimed{key, texts.Digest([]byte(value))})
	for _, p := range o.processes {
		if p.client == c && !slices.Contains(of.others, p) {
			of.others = append(of.others, p)
		}
	}
}

// beside is the processes other than its holder's that may owe the release of a value. One that has been closed owes
// nothing any more: the key may stay for its TTL.
func (o *owners) beside(s *sight) (others []*process, closed bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c := o.claims[s.of]
	if c == nil {
		return nil, false
	}
	return c.others, slices.ContainsFunc(c.others, func(p *process) bool { return !p.ending.IsZero() })
}

// isFreed reports whether an operator has freed the key of b.
func (o *owners) isFreed(key string, b *holding) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	c := o.claims[claimed{key, b.digest}]
	return c != nil && c.freed
}

// believes notes that a holder believes to have a key.
func (o *owners) believes(key string, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.present[key] = now
}

// look looks at all keys. While all nodes are well for long, none is without an owner for long.
func (o *owners) look(now time.Time, calm bool) {
	members := o.members()
	gated := slices.DeleteFunc(slices.Clone(o.keys), func(key string) bool {
		return !slices.ContainsFunc(o.servers, func(s *fakeredis.Server) bool { _, up := s.Get(key + ":redlock:gate"); return up })
	})
	o.mu.Lock()
	for _, key := range gated { // a gate refuses those who would share the key, also while it is free
		o.present[key] = now
	}
	for at := range members {
		if o.sights[at] == nil {
			s := &sight{value: at.member, of: claimed{at.key, texts.Digest([]byte(at.member))}}
			s.drawn(o, now.Add(-looks)) // it may have come right after the last look
			o.sights[at] = s
		}
	}
	all := make(map[place]*sight, len(o.sights))
	for at, s := range o.sights {
		all[at] = s
	}
	o.mu.Unlock()
	orphans := map[*process][]place{}
	for at, s := range all { // the server's lock comes before that of the owners
		value, ok := o.servers[at.node].Get(at.key)
		if at.member != "" {
			ok = members[at]
			value = at.member
		}
		if o.owned(at, s, ok && value == s.value, now) {
			delete(all, at)
		} else {
			orphans[s.process] = append(orphans[s.process], at)
		}
	}
	for p, places := range orphans {
		has := p.business()
		for _, at := range places {
			s, addr := all[at], o.servers[at.node].Addr()
			owes, busy := has.owed[addr], has.busy
			others, closed := o.beside(s)
			for _, other := range others {
				its := other.business()
				owes, busy = owes || its.owed[addr], busy || its.busy
			}
			if has.collected[s.of] || closed {
				o.keep(s)
			} else {
				o.judge(at, s, owes || busy, owes, now, calm)
			}
		}
	}
}

func (o *owners) members() map[place]bool {
	all := map[place]bool{}
	for node, s := range o.servers {
		for _, key := range o.keys {
			holders, _ := s.Holders(key)
			for value := range holders {
				all[place{key, node, value}] = true
			}
		}
	}
	return all
}

// owned reports whether a value is there no more, or has an owner that the test knows.
func (o *owners) owned(at place, s *sight, there bool, now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !there {
		if o.sights[at] == s {
			delete(o.sights, at)
		}
		return true
	}
	o.present[at.key] = now
	c := o.claims[s.of]
	return s.process == nil || s.process.client == nil || o.has(s) && (c == nil || c.held || c.stay == 0) // a stay is judged
}

// has reports whether a handle has a value, or is about to. The owners are locked.
func (o *owners) has(s *sight) bool {
	c := o.claims[s.of]
	now := time.Now()
	if has := c != nil && (c.held || now.Before(c.term)) || now.Before(s.term) || s.process.given > 0; !has {
		return false
	}
	s.since, s.alone = time.Time{}, 0
	return true
}

// keep notes that a value has an owner.
func (o *owners) keep(s *sight) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s.since, s.alone = time.Time{}, 0
}

// judge looks at a value without a handle. owed: its process has something under way to the node,
// or owes it a release. owes: the node owes it a reply, or is owed a release, and so may not have heard of that of this
// value. A stay begins when the release arrives.
func (o *owners) judge(at place, s *sight, owed, owes bool, now time.Time, calm bool) {
	last := o.troubled()
	o.mu.Lock()
	defer o.mu.Unlock()
	if c := o.claims[s.of]; c != nil && c.stay > 0 && owes {
		s.term = now.Add(c.stay + orphaned)
	}
	if o.has(s) {
		return
	}
	if s.since.IsZero() {
		s.since = now
	}
	p, why := s.process, ""
	switch {
	case s.late && !last.IsZero() && !calm: // a middlebox had it while its connection died
	case !p.ended.IsZero():
		if now.Sub(p.ended) > onTheWay && p.ended.Sub(last) > unsettled {
			why = fmt.Sprintf("its client was closed at %.4f s", o.at(p.ended))
		}
	case !p.ending.IsZero(): // it is judged when it is closed
	case !owed:
		s.alone++
		if s.alone == 3 {
			why = "its client has nothing under way there, and owes no release"
		}
	case calm && now.Sub(s.since) > orphaned:
		why = "all nodes answer"
	}
	if why != "" {
		state := "never granted to a caller"
		if c := o.claims[s.of]; c != nil && !c.since.IsZero() {
			state = fmt.Sprintf("granted at %.4f s and given back at %.4f s", o.at(c.since), o.at(c.left))
		}
		_, drawn := o.drawer(s.value)
		o.fail("node %d has %s of client %s, drawn at %.4f s, %s; without an owner since %.4f s: %s",
			at.node, at.key, p.who, o.at(drawn), state, o.at(s.since), why)
	}
}

// taken reports whether an answer "taken" of a call begun then was a fact: some node had one of the keys, or a holder of
// the process believed so, during the call or in the second before it.
func (o *owners) taken(began time.Time, keys ...string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.ContainsFunc(keys, func(key string) bool {
		return o.present[key].Add(time.Second+late).After(began) || o.believed[key].After(began)
	})
}

func (o *owners) at(t time.Time) float64 { return t.Sub(o.began).Seconds() }
