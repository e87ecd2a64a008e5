package holding

import (
	"math"
	"sync"
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/base/opaque"
	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/rules/fencing"
	"github.com/redlock-go/redlock/internal/rules/renewal"
	"github.com/redlock-go/redlock/internal/wire/token"
	"github.com/redlock-go/redlock/quorum"
)

// lease is the state of one held lock, or a used one ready for the next lock. It is safe for concurrent use.
//
// A lease is used again once its lock is gone, so acquiring allocates nothing. A Hold may outlive its lock, so each
// remembers its life of the lease, and holds nothing in another one. So a Hold may be copied, kept and used twice.
//
// A client may hold a million leases, so the fields are few, in an order without gaps: 112 bytes.
type lease struct {
	mu       sync.Mutex
	life     uint64
	key      string // the first, of several
	token    token.Token
	releases uint8 // asked for, and perhaps sent; at most manyReleases
	notes    uint8 // a bit for each of the following

	validity renewal.Validity
	granted  clock.Instant
	waited   uint32 // for the lock, in milliseconds before granted
	stays    uint32 // at the nodes, in milliseconds after granted; 0: the key ends with the lock

	absent quorum.Set // nodes without the key
	kept   *Kept      // if the lock is kept alive
	more   *More      // what only some locks have
}

const (
	contended  = 1 << iota // there were several releases
	reported               // the loss was reported, or there will be none to report
	tokenShown             // the user has asked for the token
	shared                 // others may hold the lock too
	waits                  // its caller waits for locks
	ofAny                  // and wants any of several keys
)

// MaxPasses bounds the holders of one grant, in a row inside a process: then other processes have their turn. The
// lives of a grant are its serial number times MaxPasses, and the next ones.
const MaxPasses = 64

// manyReleases is where releases stops counting: the lock has no validity any more, although perhaps no release was
// sent.
const manyReleases = 255

// More is what only some locks have: several keys, or a value of more than a token. It does not change. Locks with the
// same one have values differing by their tokens alone.
type More struct {
	Keys    []string         // all, if there are several; a moving key once for each of its sites
	On      []*engine.Engine // of each of Keys; nil: all are where the lock is counted and kept
	HasTail bool             // Tail follows the token in its value, and not the client's
	Tail    string
}

// At is the engine of the i-th key; home is where the lock is counted and kept.
func (m *More) At(i int, home *engine.Engine) *engine.Engine {
	if m == nil || m.On == nil {
		return home
	}
	return m.On[i]
}

// Turns is how many engines are asked for the keys, one after another.
func (m *More) Turns() int {
	turns := 1
	for i := 1; m != nil && i < len(m.On); i++ {
		if m.On[i] != m.On[i-1] {
			turns++
		}
	}
	return turns
}

// Turn is a holder's time with a lock.
type Turn struct {
	Wanted  clock.Instant // since when its caller wanted it
	Granted clock.Instant // since when its caller has it
	Shared  bool          // others may hold it too
	Waits   bool          // its caller has called Acquire or Do, which wait for a lock
	OfAny   bool          // and wants any of several keys
}

// State is a copy of what is known of a lock.
type State struct {
	Key          string
	Serial       uint64 // of the grant, of the first key: see engine.Op
	Token        token.Token
	renewal.Held // once a release was asked for there is no validity, but perhaps a key
	Turn
	More  *More
	Kept  bool          // it is kept alive
	Stays clock.Instant // until then its key stays at the nodes, also where it was released or passed on; or 0
}

// Keys is all keys, in the order of their writing.
func (s *State) Keys() []string {
	if s.More != nil && s.More.Keys != nil {
		return s.More.Keys
	}
	return []string{s.Key}
}

// Several returns the keys of a lock of several keys, or nil.
func (s *State) Several() []string {
	if s.More == nil {
		return nil
	}
	return s.More.Keys
}

// Tail is what follows the token in the value at the keys. It is the client's tail. A lock has its own tail if it was
// attached, has a name of its own, or was acquired for a client of a front end.
func (s *State) Tail(ofClient string) string {
	if s.More != nil && s.More.HasTail {
		return s.More.Tail
	}
	return ofClient
}

// Calls returns the calls for an operation on the lock, to be freed, or an error of wrong arguments. ofClient is the client's
// tail.
func (s *State) Calls(home *engine.Engine, kind engine.Kind, ttl time.Duration, ofClient string) (first *engine.Call, err error) {
	keys, tail := s.Several(), s.Tail(ofClient)
	for i := max(1, len(keys)) - 1; i >= 0; i-- {
		key := s.Key
		if keys != nil {
			key = keys[i]
		}
		c, err := s.More.At(i, home).Call(kind, key, ttl)
		if err != nil {
			first.Free()
			return nil, err
		}
		c.Tail, c.Shared, c.OfSet, c.And, first = tail, s.Shared, keys != nil, first, c
	}
	return first, nil
}

// leases is used leases, of all clients.
var leases = sync.Pool{New: func() any { return new(lease) }}

// Begin begins to hold a lock. The nodes of absent do not have its key.
func (k *Keeper) Begin(s *State, absent quorum.Set, fence fencing.Token) Hold {
	if s.Shared {
		fence = 0 // it was proposed for the first in line, of any kind
	}
	k.expiries.add(s.Until, 1)
	l := leases.Get().(*lease)
	return Hold{opaque.To(l), l.begin(s, absent), fence}
}

// begin starts a life with a state and returns its number. The lease must not be in use.
func (l *lease) begin(s *State, absent quorum.Set) (life uint64) {
	l.mu.Lock() // a Hold of an earlier life may look
	life = s.Serial * MaxPasses
	l.life, l.key, l.token, l.more, l.absent = life, s.Key, s.Token, s.More, absent
	l.validity, l.kept = renewal.Validity{TTL: s.TTL, Until: s.Until}, nil
	l.releases, l.notes = 0, 0
	l.granted, l.stays = s.Granted, 0
	l.waited = milliseconds(s.Granted.Sub(s.Wanted))
	if s.Shared {
		l.notes = shared
	}
	if s.Waits {
		l.notes |= waits
	}
	if s.OfAny {
		l.notes |= ofAny
	}
	l.mu.Unlock()
	return life
}

// milliseconds is d as a lease keeps it: to 49 days.
func milliseconds(d time.Duration) uint32 {
	return uint32(max(0, min(d/time.Millisecond, math.MaxUint32)))
}

// stay notes until when the key stays at the nodes, and staying is that, or 0.
func (l *lease) stay(until clock.Instant) { l.stays = milliseconds(until.Sub(l.granted)) }

func (l *lease) staying() clock.Instant {
	if l.stays == 0 {
		return 0
	}
	return l.granted.Add(time.Duration(l.stays) * time.Millisecond)
}

// turn is the present holder's.
func (l *lease) turn() Turn {
	wanted := l.granted.Add(-time.Duration(l.waited) * time.Millisecond)
	return Turn{Wanted: wanted, Granted: l.granted, Shared: l.notes&shared != 0, Waits: l.notes&waits != 0, OfAny: l.notes&ofAny != 0}
}

// IsHeld implements engine.Repairer.
func (l *lease) IsHeld(life uint64) bool {
	if !(Hold{ref: opaque.To(l), life: life}).lock() {
		return false
	}
	defer l.mu.Unlock()
	return l.releases == 0
}

// Repair implements engine.Repairer. After a release was asked for it allows nothing: the release might reach the
// node before the key does. A node no longer counts as one without the key before the key is sent to it: it may set
// the key even if its answer is lost.
func (l *lease) Repair(life uint64, node int, now clock.Instant) time.Duration {
	if !(Hold{ref: opaque.To(l), life: life}).lock() {
		return 0
	}
	defer l.mu.Unlock()
	if l.releases > 0 {
		return 0
	}
	left := l.validity.Repair(now)
	if left > 0 {
		l.absent.Remove(node)
	}
	return left
}

// Hold is one holder's claim to a lock: a lease, and one life of it. It is a small value, and may be copied. The zero
// Hold holds nothing, as does the Hold of a lock released or passed on.
type Hold struct {
	ref   opaque.Ref[lease]
	life  uint64
	Fence fencing.Token // the fencing token, or 0
}

func (h Hold) lease() *lease { return h.ref.Get() }

// Bind has extends win only while the validity of h lasts, until before. Nodes without a key are given it again.
func (h Hold) Bind(calls *engine.Call, before clock.Instant) {
	calls.Each(func(c *engine.Call) { c.Before, c.Repairer, c.Life = before, h.lease(), h.life })
}

// Serial is the number of the grant.
func (h Hold) Serial() uint64 { return h.life / MaxPasses }

// lock locks the lease, and reports whether h still holds it. If not, nothing is locked.
func (h Hold) lock() bool {
	if h.lease() == nil {
		return false
	}
	h.lease().mu.Lock()
	if h.lease().life == h.life && h.lease().key != "" {
		return true
	}
	h.lease().mu.Unlock()
	return false
}

// State returns what is known of the lock. If h holds nothing it is a released one, and false.
func (h Hold) State() (s State, ok bool) {
	if !h.lock() {
		s.Released = true
		return s, false
	}
	l := h.lease()
	defer l.mu.Unlock()
	s = State{
		Key: l.key, Serial: l.life / MaxPasses, Token: l.token, More: l.more,
		Held: renewal.Held{Until: l.validity.Until, TTL: l.validity.TTL, Released: l.releases > 0},
		Turn: l.turn(), Kept: l.kept != nil, Stays: l.staying(),
	}
	if s.Released {
		s.Until = 0
	}
	return s, true
}

// NoteExtend notes the result of an extension of the lock of h.
func (k *Keeper) NoteExtend(h Hold, calls *engine.Call, r renewal.Result) {
	if !h.lock() {
		return
	}
	l := h.lease()
	before := l.validity.Until
	l.validity.Extended(renewal.Validity{TTL: calls.TTL, Until: calls.Least()}, r)
	after, released := l.validity.Until, l.releases > 0
	l.mu.Unlock()
	if before != after && !released { // else it is not counted
		k.expiries.add(before, -1)
		k.expiries.add(after, 1)
	}
}

// keep notes that the lock is kept alive. It is false for a lock released, or kept alive already.
func (h Hold) keep(c *Kept) bool {
	if !h.lock() {
		return false
	}
	defer h.lease().mu.Unlock()
	if h.lease().releases > 0 || h.lease().kept != nil {
		return false
	}
	h.lease().kept = c
	return true
}

// kept is the context of the lock, or nil if it is not kept alive.
func (h Hold) kept() *Kept {
	if !h.lock() {
		return nil
	}
	defer h.lease().mu.Unlock()
	return h.lease().kept
}

// Releasing notes that a release of the lock of h is about to be sent. This ends validity, and the renewals: the nodes
// may apply it at any time, and another holder may follow. It returns the nodes without the key. If not ok, the release
// must not be sent: another Hold may have the lock by the same token.
func (k *Keeper) Releasing(h Hold) (absent quorum.Set, ok bool) {
	if !h.lock() {
		return 0, false
	}
	l := h.lease()
	until, absent, kept := l.validity.Until, l.absent, l.kept
	if l.releases > 0 {
		until = 0
		l.notes |= contended
	}
	if l.releases < manyReleases {
		l.releases++
	}
	l.mu.Unlock()
	k.expiries.add(until, -1)
	if kept != nil {
		k.stop(kept)
	}
	return absent, true
}

// ReleasingPlain is Releasing for a lock of one key, not kept alive, not released before, whose key does not stay. It
// makes op the lock's release; for any other lock it notes nothing.
func (k *Keeper) ReleasingPlain(h Hold, op *engine.Op) (t Turn, ok bool) {
	if !h.lock() {
		return t, false
	}
	l := h.lease()
	until := l.validity.Until
	t = l.turn()
	ok = l.releases == 0 && l.kept == nil && l.stays == 0 && (l.more == nil || l.more.Keys == nil)
	if ok {
		l.releases = 1
		op.Token, op.Absent, op.Shared = l.token, l.absent, l.notes&shared != 0
		if l.more != nil {
			op.Tail = l.more.Tail
		}
	}
	l.mu.Unlock()
	if ok {
		k.expiries.add(until, -1)
	}
	return t, ok
}

// Stay notes until when the key of the lock stays at the nodes.
func (h Hold) Stay(until clock.Instant) {
	if h.lock() {
		h.lease().stay(until)
		h.lease().mu.Unlock()
	}
}

// Unreleased takes back a release never sent.
func (k *Keeper) Unreleased(h Hold) {
	if !h.lock() {
		return
	}
	l := h.lease()
	if l.releases < manyReleases {
		l.releases--
	}
	until, released := l.validity.Until, l.releases > 0
	l.mu.Unlock()
	if !released {
		k.expiries.add(until, 1)
	}
}

// ReportLoss notes that the loss of the lock is known, and reports whether the user is to learn of it: once, and not
// if another release may have deleted the lock.
func (h Hold) ReportLoss() bool {
	if !h.lock() {
		return false
	}
	l := h.lease()
	defer l.mu.Unlock()
	if l.notes&reported != 0 {
		return false
	}
	l.notes |= reported
	return l.notes&contended == 0
}

// End gives the lease back for another lock. Of several callers one gets true.
func (h Hold) End() bool {
	if !h.lock() {
		return false
	}
	l := h.lease()
	l.key, l.more, l.validity, l.kept = "", nil, renewal.Validity{}, nil
	l.mu.Unlock()
	leases.Put(l)
	return true
}

// ShowToken notes that the user knows the token. The lock is not passed on then: another may have the token too.
func (h Hold) ShowToken() {
	if h.lock() {
		h.lease().notes |= tokenShown
		h.lease().mu.Unlock()
	}
}

// Pass ends h and begins the Hold of the next holder, waiting since then, with the next holder's ttl and
// renewals: the nodes see one long hold. A stay of its key passes on too. It returns when validity ends. If not ok, the
// lock stays with h. The reasons are: less than 7/8 of ttl is left,
// or more than ttl; the next holder's locks have another value; the lock is shared, lost, or may be in other hands; it
// was passed on often enough.
func (h Hold) Pass(now, wanted clock.Instant, ttl time.Duration, more *More) (next Hold, until clock.Instant, ok bool) {
	if !h.lock() {
		return Hold{}, 0, false
	}
	l := h.lease()
	defer l.mu.Unlock()
	switch {
	case l.releases > 0, l.kept != nil, l.more != more, l.notes&^(waits|ofAny) != 0, (h.life+1)%MaxPasses == 0:
		return Hold{}, 0, false
	}
	until, ok = l.validity.Pass(now, ttl)
	if !ok {
		return Hold{}, 0, false
	}
	l.life++
	stays := l.staying()
	l.granted, l.waited = now, milliseconds(now.Sub(wanted))
	l.stay(stays)
	next = (Hold{h.ref, l.life, h.Fence})
	if next.Fence != 0 {
		next.Fence++ // the nodes have recorded a token for each pass
	}
	return next, until, true
}
