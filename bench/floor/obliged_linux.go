package floor

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/redlock-go/redlock/bench/harness"
	"github.com/redlock-go/redlock/internal/wire/command"
	"github.com/redlock-go/redlock/internal/wire/token"
	"github.com/redlock-go/redlock/quorum"
)

// obliged is a crew whose locks get what every lock client owes them: a fresh token, a command of
// their own, a vote of each node, late ones too, the clock before and after, a look at the context. It
// keeps the crew's barrier, which no library can have.
type obliged struct {
	crew
	config   *quorum.Config
	ttl      time.Duration
	holders  []*holder
	rounds   [64]round // the last steps, for late votes
	nodes    []reader
	operands []command.Operand
	request  []byte
}

// holder is the goroutine of one lock.
type holder struct {
	place
	o     *obliged
	key   []byte
	token token.Token
	won   bool // in the last step
}

// round is the votes of one step.
type round struct {
	step    int
	tallies []quorum.Tally // one a holder
}

// reader is how far the replies of one node were read.
type reader struct {
	step, lock int
	rest       []byte // of a line
}

func newObliged(s *session, cfg harness.Config) *obliged {
	o := &obliged{config: quorum.Majority(1<<uint(len(cfg.Nodes)) - 1), ttl: cfg.TTL, nodes: make([]reader, len(cfg.Nodes))}
	o.crew = crew{s: s, take: o.take}
	s.check = o.count
	return o
}

func (o *obliged) Worker() (harness.Worker, error) {
	h := &holder{place: newPlace(&o.crew), o: o}
	o.places, o.holders = append(o.places, &h.place), append(o.holders, h)
	return h, nil
}

func (h *holder) Acquire(ctx context.Context, key string) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	if err := h.token.Fill(nil); err != nil {
		return false, err
	}
	h.key = append(h.key[:0], key...)
	began := time.Now()
	if err := h.next(); err != nil {
		return false, err
	}
	if time.Since(began) >= quorum.Until(0, h.o.ttl) {
		return false, errors.New("no validity is left")
	}
	return h.won, ctx.Err()
}

func (h *holder) Release(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := h.next(); err != nil {
		return err
	}
	if !h.won {
		return errors.New("not held")
	}
	return nil
}

// take is one step for all holders, also for those that have left: others continue with whole batches.
func (o *obliged) take(step int) error {
	kind, ttl := command.Acquire, o.ttl
	if step%2 == 1 {
		kind, ttl = command.Release, 0 // of a release it is for how long the key stays
	}
	r := &o.rounds[step%len(o.rounds)]
	r.step, r.tallies = step, r.tallies[:0]
	o.operands, o.request = o.operands[:0], o.request[:0]
	for _, h := range o.holders {
		var t quorum.Tally
		t.Reset(o.config)
		r.tallies = append(r.tallies, t)
		o.operands = append(o.operands, command.Operand{Key: h.key, Token: h.token[:], TTL: ttl.Milliseconds()})
	}
	for rest := o.operands; len(rest) > 0; {
		n := command.Merge(kind, 0, rest, command.MaxKeys)
		o.request = command.Append(o.request, kind, 0, rest[:n], nil)
		rest = rest[n:]
	}
	if err := o.s.step(o.request, len(o.s.plan.replies[step%2])); err != nil {
		return err
	}
	for i, h := range o.holders {
		h.won = r.tallies[i].Verdict() == quorum.Won
	}
	return nil
}

// count records the votes among the bytes of a node.
func (o *obliged) count(node int, _ int64, got []byte) error {
	n := &o.nodes[node]
	if len(n.rest) > 0 {
		got = append(n.rest, got...)
	}
	for {
		end := bytes.IndexByte(got, '\n')
		if end < 0 {
			n.rest = append(n.rest[:0], got...)
			return nil
		}
		line := got[:end+1]
		got = got[end+1:]
		votes := 1
		if line[0] == ':' { // the number of those that were released
			votes, _ = strconv.Atoi(string(line[1 : end-1]))
		} else if string(line) != "+OK\r\n" {
			return unexpected(o.s.addrs[node], line, []byte("+OK\r\n"))
		}
		for ; votes > 0; votes-- {
			if r := &o.rounds[n.step%len(o.rounds)]; r.step == n.step { // else it is too late to be counted
				r.tallies[n.lock].Record(node, quorum.Granted)
			}
			n.lock++
			if n.lock == len(o.holders) {
				n.step, n.lock = n.step+1, 0
			}
		}
	}
}
