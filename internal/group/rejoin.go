package group

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/command"
	"github.com/redlock-go/redlock/internal/engine"
	"github.com/redlock-go/redlock/internal/fencing"
)

// medic is the goroutine of a fenced client that brings nodes back which have forgotten
// their tokens, as fencing.Rejoin says, and has nodes forget old ones. It begins with the
// client and ends with it.
type medic struct {
	fence *fence
	wake  chan struct{} // holds one
	ended chan struct{}
	cases map[int]*fencing.Treatment
}

const (
	// keepTokens is for how long the token of an idle key is kept, and collectEvery how often
	// older ones are dropped.
	keepTokens   = time.Hour
	collectEvery = 10 * time.Minute
)

func (m *medic) init(f *fence) {
	m.fence = f
	m.wake, m.ended = make(chan struct{}, 1), make(chan struct{})
	m.cases = map[int]*fencing.Treatment{}
}

func (m *medic) ring() {
	select {
	case m.wake <- struct{}{}:
	default: // it will look
	}
}

func (m *medic) run() {
	defer close(m.ended)
	f := m.fence
	g := f.group
	collect := m.nextCollect()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		pause := collect - g.clock.Now()
		if pause <= 0 {
			m.collect()
			collect = m.nextCollect()
			continue
		}
		for left := f.forgotten.Load(); left != 0; left &= left - 1 {
			node := bits.TrailingZeros64(left)
			t := m.cases[node]
			if t == nil {
				t = &fencing.Treatment{Rejoin: fencing.BeginRejoin(f.fleet, node)}
				m.cases[node] = t
			}
			if f.doubted.And(^bit(node))&bit(node) != 0 {
				t.Doubt()
			}
			again, finished := f.treat(t, node, nil)
			if finished {
				delete(m.cases, node)
				f.voting(node)
			} else {
				pause = min(pause, again)
			}
		}
		timer.Reset(max(pause, time.Millisecond))
		select {
		case <-m.wake:
		case <-timer.C:
		case <-g.ending:
			return
		}
	}
}

func (m *medic) nextCollect() time.Duration {
	return m.fence.group.clock.Now() + collectEvery/2 + rand.N(collectEvery)
}

// nonce is one that no notice has had before.
func (f *fence) nonce() string {
	return f.group.lines.pushes.id + "." + strconv.FormatUint(f.nonces.Add(1), 10)
}

// collect has the nodes forget tokens of keys that were last locked long ago. Any bound is
// safe; one in the past costs no client an attempt. It is taken from a token that nodes have
// granted, not from the client's clock: that may be off, which would cost tokens of all
// keys, and it is user code.
func (m *medic) collect() {
	f := m.fence
	granted := f.granted.Load()
	bound := granted - min(granted, uint64(keepTokens.Microseconds()))
	for node := range f.fleet.Nodes {
		if bound > 0 && f.forgotten.Load()&bit(node) == 0 {
			_, _ = f.ask(node, "collect", strconv.FormatUint(bound, 10))
		}
	}
}

// treat does the steps that can be done now to bring a node back. It returns when to go on,
// or that the node has its vote. init is for an operator's floor: what is done for all nodes.
func (f *fence) treat(t *fencing.Treatment, node int, init []fencing.Treatment) (again time.Duration, finished bool) {
	var failed error // of a read
	for reads := false; ; {
		f.group.clock.Sync() // a quarantine counts the time for which the machine was suspended
		r, pause := t.Next(f.group.clock.Now(), f.nonce())
		switch r.Verb {
		case fencing.NoticeVerb:
			_ = f.answer(t, r, r.Nonce) // what follows, t says
		case fencing.ReadVerb:
			reads = true
			if err := f.answer(t, r); err != nil {
				failed = fmt.Errorf("%s: %w", f.group.fleet.Addr(r.Node), err)
			}
		case fencing.RejoinVerb:
			if init != nil {
				r.Floor = max(r.Floor, f.known(node, init))
			}
			_ = f.answer(t, r, r.Nonce, strconv.FormatUint(r.Floor, 10))
		default:
			if reads && !t.Finished() { // too few others have a vote
				f.mu.Lock()
				f.faults[node] = failed
				f.mu.Unlock()
			}
			return pause, t.Finished()
		}
	}
}

// answer makes a request.
func (f *fence) answer(t *fencing.Treatment, r fencing.Request, args ...string) error {
	a, err := f.ask(r.Node, r.Verb, args...)
	f.group.clock.Sync() // also for which it was before the receipt, where a quarantine begins
	t.Answered(r, a, err == nil, f.group.clock.Now())
	if log := f.group.cfg.Logger; log != nil && err == nil && r.Verb == fencing.RejoinVerb && a.Code == fencing.OK {
		addr := f.group.fleet.Addr(r.Node)
		f.group.engine.Tell(func() { log.Info("redlock: node has its fenced vote back", "node", addr, "floor", r.Floor) })
	}
	return err
}

var errNoAnswer = errors.New("no answer that fits")

// ask runs the member script on a node, on its present connection alone. After NOSCRIPT the
// script is loaded and run: the first call has done nothing.
func (f *fence) ask(node int, verb fencing.Verb, args ...string) (a fencing.Answer, err error) {
	f.mu.Lock()
	l := f.lives[node]
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.lives[node].connection == l.connection {
			if f.faults[node] = err; err == nil && a.Code != fencing.Foreign {
				f.foreign[node] = ""
			}
		}
	}()
	if l.connection == 0 {
		return a, conn.ErrDown
	}
	for load := false; ; load = true {
		q := f.group.engine.Query(node, max(f.group.queryTimeout(), time.Second/4))
		q.Connection = l.connection
		skip := 0
		if load {
			q.Buf, skip = command.AppendLoadMember(q.Buf)
		}
		var n int
		q.Buf, n = command.AppendMember(q.Buf, f.set, l.me, string(verb), args...)
		q.Replies = skip + n
		f.group.engine.Ask(q)
		select {
		case <-q.Answered():
		case <-f.group.ending:
			err = errNoAnswer
		}
		var said command.Said
		if err == nil {
			err = q.Err
		}
		if err == nil {
			said = q.Said[skip]
		}
		q.Free()
		switch {
		case err != nil:
			return a, err
		case said.Code == "NOSCRIPT" && !load:
			continue
		case said.Err != nil:
			return a, said.Err
		case said.Fence.Code == 0:
			return a, errNoAnswer
		}
		f.told(node, said.Fence)
		return said.Fence, nil
	}
}

// aheadOf is above the tokens that a node accepts at a time.
func aheadOf(micros uint64) uint64 {
	return min(micros, fencing.MaxToken) + uint64(maxAhead.Microseconds()) + maxPasses
}

// known is what is known of the largest token, for the floor that an operator gives to a node
// in quarantine: what the others know now, and the nodes' own times, which end their nonces.
// They have accepted no token that was further ahead of them. The times of all are taken, so
// that most nodes get one floor, which a first attempt then learns from one of them.
func (f *fence) known(node int, init []fencing.Treatment) (token uint64) {
	for i := range init {
		nonce := init[i].Nonce()
		if micros, err := strconv.ParseUint(nonce[strings.LastIndexByte(nonce, '.')+1:], 10, 64); err == nil {
			token = max(token, min(aheadOf(micros), fencing.MaxToken/2))
		}
	}
	for other := range f.fleet.Nodes {
		if other == node {
			continue
		}
		if a, err := f.ask(other, "read"); err == nil && a.Code == fencing.OK {
			token = max(token, a.Token)
		}
	}
	return token
}

// InitFencing gives nodes without a vote one, though too many have forgotten for them to be
// brought back by the others. It waits for the longest TTL. The floor that it trusts in is
// the client's clock, and what nodes that have a vote still know.
func (g *Group) InitFencing(ctx context.Context) error {
	f := &g.fence
	ctx = orBackground(ctx)
	if !f.on {
		return fmt.Errorf("%w: InitFencing needs Config.Fenced", ErrConfig)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	floor := aheadOf(f.micros())
	if floor > fencing.MaxToken/2 { // the year 2112, and as long again for what is granted
		return errFarClock
	}
	active, cases := 0, make([]fencing.Treatment, f.fleet.Nodes)
	for node := range cases {
		if a, err := f.ask(node, "read"); err == nil && a.Code == fencing.OK {
			floor = max(floor, a.Token)
			active++
		} else if err == nil && a.Code == fencing.Foreign {
			return f.misfit()
		}
	}
	var init []fencing.Treatment
	if active < f.fleet.Nodes-f.fleet.Quorum+1 { // else the others know all
		init = cases
	}
	for node := range cases {
		if cases[node].Rejoin = fencing.BeginRejoin(f.fleet, node); init != nil {
			cases[node].Rejoin = fencing.BeginInit(f.fleet, node, floor)
		}
	}
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		pause, voting := time.Duration(never), 0
		for node := range cases {
			again, finished := f.treat(&cases[node], node, init)
			switch {
			case finished:
				f.voting(node)
				voting++
			case g.up(node):
				pause = min(pause, again)
			}
		}
		if pause == never && voting >= max(f.fleet.Quorum, f.fleet.Nodes-f.fleet.Quorum+1) {
			return nil // nodes that are down are brought back by the others
		}
		timer.Reset(min(max(pause, time.Millisecond), fencing.RetryRejoin))
		select {
		case <-timer.C:
		case <-ctx.Done():
			return &notReady{endOf(ctx), f.voteless()}
		case <-g.ending:
			return engine.ErrClosed
		}
	}
}
