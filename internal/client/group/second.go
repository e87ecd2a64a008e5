package group

import "github.com/redlock-go/redlock/internal/client/engine"

// second is the part of an Op in the second of two groups, where its key moves from one to the
// other. That group is asked after the first: an acquire or extend goes on where it has won, a
// release in any case. To its user the operation is under way until both have ended.
type second struct {
	engine.Op
	group  *Group // nil: the key is in one group
	of     *Op
	joined bool // its result is part of the whole
}

// Complete implements engine.Completion.
func (s *second) Complete(*engine.Op) {
	s.of.join(s.Err)
	s.of.Done.Complete(&s.of.Op)
}

// setSecond sets the second group of an operation that begins, or nil.
func (op *Op) setSecond(also *Group) {
	if op.second == nil {
		if also == nil {
			return
		}
		op.second = &second{of: op}
		op.second.Done = op.second
	}
	op.second.group = also
}

// moves returns the second part of an operation, or nil if it has one.
func (op *Op) moves() *second {
	if op.second == nil || op.second.group == nil {
		return nil
	}
	return op.second
}

// goesOn asks the second group once the first has answered, and reports whether it did.
func (op *Op) goesOn() bool {
	s := op.moves()
	if s == nil || s.joined || op.Kind != engine.Release && op.Err != nil || !op.Reserve() {
		return false
	}
	if s.Token != op.Token {
		s.Absent = 0
	}
	s.Kind, s.Key, s.TTL, s.Token, s.Tail, s.Block, s.Part = op.Kind, op.Key, op.TTL, op.Token, op.Tail, op.Block, true
	err := s.group.engine.Submit(&s.Op)
	if err == nil {
		return true
	}
	if op.Kind == engine.Release && err == engine.ErrBusy { // the first group has released it, so this one does too
		s.group.engine.Abandon(&s.Op)
		err = nil
	}
	op.join(err)
	return false
}

// join makes the result of the second group part of the whole.
func (op *Op) join(err error) {
	s := op.second
	s.joined = true
	op.Until = min(op.Until, s.Until)
	if joint := engine.Joint(op.Err, err); joint != op.Err {
		op.Err, op.Tally, op.decider = joint, s.Tally, s.group
		op.Failures = append(op.Failures[:0], s.Failures...)
		op.Refusals = append(op.Refusals[:0], s.Refusals...)
		if op.Kind == engine.Acquire {
			op.group.engine.Abandon(&op.Op)
		}
	}
	op.Unreserve()
}

// cancel takes the operation back from the second group.
func (s *second) cancel() bool {
	if s == nil || !s.group.engine.Cancel(&s.Op) {
		return false
	}
	if op := s.of; op.Kind == engine.Acquire {
		op.group.engine.Abandon(&op.Op)
	}
	s.of.Unreserve()
	return true
}
