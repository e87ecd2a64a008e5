package group

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/bits"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/command"
	"github.com/redlock-go/redlock/internal/fencing"
)

// medic is the goroutine of a fenced client that brings nodes back which have forgotten
// their tokens, as fencing.Rejoin says. From time to time it looks at the others, and has them
// forget old tokens. It begins with the client and ends with it, and calls no user code.
type medic struct {
	fence *fence
	wake  chan struct{} // holds one
	ended chan struct{}
	cases map[int]*fencing.Treatment
}

const (
	// keepTokens is for how long the token of an idle key is kept, by the nodes' clocks: one
	// that is far ahead or behind costs acquires on that node at most.
	keepTokens = time.Hour
	// maxLook bounds how long a node is not looked at, where MaxTTL does not.
	maxLook = 10 * time.Minute
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
	due := m.nextLook()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		if due <= g.clock.Now() {
			m.look()
			due = m.nextLook()
		}
		pause := due - g.clock.Now()
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
				again = 0 // the others may read it
			}
			pause = min(pause, again)
		}
		pause = max(pause, time.Millisecond)
		timer.Reset(pause + rand.N(pause)/4) // clients that have begun together do not go on so
		select {
		case <-m.wake:
		case <-timer.C:
		case <-g.ending:
			return
		}
	}
}

// nextLook is when the nodes are looked at again: within the longest TTL and a second.
func (m *medic) nextLook() time.Duration {
	g := m.fence.group
	most := min(g.cfg.Engine.MaxTTL, maxLook) + time.Second
	return g.clock.Now() + most*5/8 + rand.N(most/8)
}

// look has the nodes forget tokens of keys that were last locked long ago. So a node that has
// lost them all is known, though the client has not locked any key since.
func (m *medic) look() {
	f := m.fence
	for node := range f.fleet.Nodes {
		if f.forgotten.Load()&bit(node) == 0 {
			_, _ = f.ask(node, fencing.CollectVerb, strconv.FormatInt(keepTokens.Microseconds(), 10))
		}
	}
}

// nonce is one that no notice has had before.
func (f *fence) nonce() string {
	return f.group.lines.ID() + "." + strconv.FormatUint(f.nonces.Add(1), 10)
}

// treat does the steps that can be done now to bring a node back. It returns when to go on,
// or that the node has its vote. With an operator the floor is at least what that one says.
func (f *fence) treat(t *fencing.Treatment, node int, by *operator) (again time.Duration, finished bool) {
	var failed error // of a read
	for {
		f.group.clock.Sync() // a quarantine counts the time for which the machine was suspended
		r, pause := t.Next(f.group.clock.Now(), f.nonce(), ^f.forgotten.Load())
		switch r.Verb {
		case fencing.NoticeVerb:
			if f.persistent&bit(node) != 0 { // if it had a vote before it restarted
				_, _ = f.ask(node, fencing.ResumeVerb)
			}
			_ = f.answer(t, r, r.Nonce) // what follows, t says
		case fencing.ReadVerb:
			if err := f.answer(t, r); err != nil {
				failed = fmt.Errorf("%s: %w", f.group.fleet.Addr(r.Node), err)
			}
		case fencing.RejoinVerb:
			if by != nil {
				r.Floor = max(r.Floor, by.floor(f))
			}
			_ = f.answer(t, r, r.Nonce, strconv.FormatUint(r.Floor, 10))
		default:
			if failed != nil && !t.Finished() { // too few others have a vote
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
	before := t.Due()
	a, err := f.ask(r.Node, r.Verb, args...)
	f.group.clock.Sync() // also for which it was before the receipt, where a quarantine begins
	now := f.group.clock.Now()
	t.Answered(r, a, err == nil, now)
	if r.Verb == fencing.NoticeVerb {
		f.mu.Lock()
		f.due[r.Node] = t.Due()
		f.mu.Unlock()
	}
	addr, left := f.group.fleet.Addr(r.Node), t.Due()-now
	switch {
	case err != nil:
	case r.Verb == fencing.RejoinVerb && a.Code == fencing.OK:
		f.log(slog.LevelInfo, "redlock: node has its fenced vote back", "node", addr, "floor", r.Floor)
	case left > 0 && t.Due() != before:
		f.log(slog.LevelWarn, "redlock: node has restarted, or forgotten its fencing tokens, and has no vote in fenced acquires: restart no other node before it has it back",
			"node", addr, "wait", left.Round(time.Millisecond))
	}
	return err
}

// log has the Logger, which is user code, called by the goroutine of callbacks.
func (f *fence) log(level slog.Level, text string, args ...any) {
	if log := f.group.cfg.Logger; log != nil {
		f.group.engine.Announce([]func(){func() { log.Log(context.Background(), level, text, args...) }})
	}
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
