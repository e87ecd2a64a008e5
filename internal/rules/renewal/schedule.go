package renewal

import "github.com/redlock-go/redlock/internal/base/clock"

// Entry is an element of a [Schedule]. It keeps its own place there, from 1 on, in the value that Place points to; 0
// means that it is in none.
type Entry interface{ Place() *int }

// Schedule orders entries by the instant of their next event: a heap with four children a node, for
// half the depth of a binary one. The zero value is empty.
type Schedule[E Entry] struct {
	slots []slot[E]
}

type slot[E Entry] struct {
	at    clock.Instant
	entry E
}

const children = 4

// Len is the number of entries.
func (s *Schedule[E]) Len() int { return len(s.slots) }

// Each calls f for all entries, in no order.
func (s *Schedule[E]) Each(f func(E) bool) {
	for i := range s.slots {
		if !f(s.slots[i].entry) {
			return
		}
	}
}

// First returns the entry with the earliest event. The schedule must not be empty.
func (s *Schedule[E]) First() (E, clock.Instant) { return s.slots[0].entry, s.slots[0].at }

// Set gives e its next event, and adds it if it is not there.
func (s *Schedule[E]) Set(e E, at clock.Instant) {
	if *e.Place() == 0 {
		s.slots = append(s.slots, slot[E]{at, e})
		*e.Place() = len(s.slots)
	}
	s.settle(*e.Place()-1, slot[E]{at, e})
}

// Remove takes e out, if it is there.
func (s *Schedule[E]) Remove(e E) {
	place, last := *e.Place()-1, len(s.slots)-1
	if place < 0 {
		return
	}
	*e.Place() = 0
	moved := s.slots[last]
	s.slots[last] = slot[E]{}
	s.slots = s.slots[:last]
	if place < last {
		s.settle(place, moved)
	}
}

// settle writes v to its place, beginning at a free one.
func (s *Schedule[E]) settle(place int, v slot[E]) {
	for place > 0 {
		parent := (place - 1) / children
		if s.slots[parent].at <= v.at {
			break
		}
		s.put(place, s.slots[parent])
		place = parent
	}
	for {
		first := place*children + 1
		least := place
		at := v.at
		for child := first; child < min(first+children, len(s.slots)); child++ {
			if s.slots[child].at < at {
				least, at = child, s.slots[child].at
			}
		}
		if least == place {
			break
		}
		s.put(place, s.slots[least])
		place = least
	}
	s.put(place, v)
}

func (s *Schedule[E]) put(place int, v slot[E]) {
	s.slots[place] = v
	*v.entry.Place() = place + 1
}
