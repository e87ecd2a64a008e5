package engine

// aligner brings acquires and releases into step. A call of a script costs a
// server tens of microseconds before it looks at the first key, so that a batch
// half of acquires and half of releases, and then another, cost it two calls
// where one would do. Callers that come back as soon as they are served stay the
// way they are once all of them acquire at the same time and release at the same
// time. So where a batch would have both, the fewer are held back for one batch,
// by whose end the others want what they want.
//
// It helps only those who come back. Where the next batch has both again it did
// not, and is not tried for a while, twice as long each time: of callers that hold
// their locks for as long as they please one batch in maxAlignPause is split.
//
// No operation is held back twice: what was is in the next batch, whatever else.
type aligner struct {
	held  int // the class that was held back from the last batch, or classes
	pause int // batches until it is tried again
	next  int // the pause after the next failure
}

const maxAlignPause = 256

func (a *aligner) init() { a.held, a.next = classes, 1 }

// hold takes out of what would go into one batch what is held back, if anything.
func (a *aligner) hold(lists *[classes]list) (held list) {
	before, may := a.held, a.pause == 0
	a.held = classes
	mixed := lists[releases].n > 0 && lists[acquires].n > 0
	switch {
	case before != classes && mixed:
		a.pause, a.next = a.next, min(2*a.next, maxAlignPause)
	case before != classes:
		a.next = 1
	case a.pause > 0:
		a.pause--
	}
	fewer := acquires
	if lists[releases].n < lists[acquires].n {
		fewer = releases
	}
	if !may || !mixed || fewer == before {
		return list{}
	}
	a.held = fewer
	held, lists[fewer] = lists[fewer], list{}
	return held
}
