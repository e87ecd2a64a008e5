package renewal

import (
	"github.com/redlock-go/redlock/internal/base/clock"
)

// Entry is an element of a [Schedule]. It remembers its own place there.
type Entry interface {
	comparable
	// SetPlace has the entry remember its place, or Nowhere.
	SetPlace(place int)
	// Place returns what SetPlace was given last.
	Place() int
}

// Nowhere is the place of an entry in no schedule.
const Nowhere = -1

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

// Len is how many entries there are.
func (s *Schedule[E]) Len() int { return len(s.slots) }

// First returns the entry with the earliest event. The schedule must not be empty.
func (s *Schedule[E]) First() (E, clock.Instant) { return s.slots[0].entry, s.slots[0].at }

// Set gives e its next event, and adds it if it is not there.
func (s *Schedule[E]) Set(e E, at clock.Instant) {
	place := e.Place()
	if place == Nowhere {
		place = len(s.slots)
		s.slots = append(s.slots, slot[E]{at, e})
	}
	s.settle(place, slot[E]{at, e})
}

// Remove takes e out, if it is there.
func (s *Schedule[E]) Remove(e E) {
	place, last := e.Place(), len(s.slots)-1
	if place == Nowhere {
		return
	}
	e.SetPlace(Nowhere)
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
	v.entry.SetPlace(place)
}
