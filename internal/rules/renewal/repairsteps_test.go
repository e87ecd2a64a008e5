package renewal_test

import (
	"bytes"
	"slices"
)

// steps calls emit with each possible next state. broken says why the state is forbidden.
func (w *world) steps(s state, emit func(next state, broken string)) {
	if next := s; next.tick() {
		emit(next, "")
	}
	for i := range s.node {
		w.stepsAt(s, i, emit)
	}
	w.stepsOfHolder(s, emit)
	for o := range others {
		w.stepsOf(s, o, emit)
	}
}

// tick lets time pass.
func (s *state) tick() (changed bool) {
	down := func(ticks *uint8) bool {
		if *ticks == 0 {
			return false
		}
		*ticks--
		changed = true
		return *ticks == 0
	}
	for i := range s.node {
		if n := &s.node[i]; down(&n[left]) {
			n[value] = 0
		}
		down(&s.node[i][quarantine])
	}
	down(&s.until)
	down(&s.reaches)
	for o := range s.other {
		down(&s.other[o].left)
	}
	return changed
}

// stepsAt is the possible events at a node.
func (w *world) stepsAt(s state, i int, emit func(state, string)) {
	if s.node[i][queue] != 0 {
		next := s
		broken := w.execute(&next, i)
		emit(next, broken)
	}
	for k := range s.extends {
		if s.node[i][answers+k] == gone && (s.won>>k&1 == 1 || w.atOnce && s.open && k == s.extends-1) {
			next := s
			next.node[i][answers+k] = over
			w.repair(&next, &next.node[i], k)
			emit(next, "")
		}
	}
	if s.restarts < w.restarts {
		next := s
		next.restarts++
		next.restart(i)
		emit(next, "")
	}
	if s.breaks < w.breaks && s.node[i][queue] != 0 {
		next := s
		next.breaks++
		next.disconnect(i)
		emit(next, "")
	}
}

// restart loses a node's memory and the messages to it.
func (s *state) restart(i int) {
	s.disconnect(i)
	n := &s.node[i]
	clear(n[queue:answers])
	n[value], n[left], n[quarantine] = 0, 0, ttl
	for o := range s.other {
		if s.other[o].phase == acquiring && n[vote+o] == 0 {
			n[vote+o] = refused
		}
	}
}

// disconnect loses the messages of client 1, but for its release.
func (s *state) disconnect(i int) {
	n := &s.node[i]
	releases := slices.Contains(n[queue:queue+inLine], delete)
	clear(n[queue : queue+inLine])
	if releases {
		n[queue] = delete
	}
	for k := range s.extends {
		if n[answers+k] == nothing {
			n[answers+k] = over
		}
	}
}

// execute has a node execute the next command of client 1.
func (w *world) execute(s *state, i int) (broken string) {
	n := &s.node[i]
	switch c := n.pop(queue, inLine); {
	case c == set:
		n.put(1, ttl, false)
	case c == delete:
		n.del(1)
	case c < repair:
		if n[answers+c-extend] = gone; n[value] == 1 {
			n[left], n[answers+c-extend] = ttl, yes
		}
	default:
		k, d := (c-repair)/(ttl+1), (c-repair)%(ttl+1)
		ok := n.put(1, d, w.overwrite)
		if !ok {
			return ""
		}
		if w.atOnce {
			n[answers+k] = yes
		}
		if s.released && !slices.Contains(n[queue:queue+inLine], delete) {
			return "a key was set behind its release"
		}
	}
	return ""
}

// verdict is the end of the extend under way. The answers it counts may have come at any time
// before.
func (w *world) verdict(s state, emit func(state, string)) {
	k := s.extends - 1
	votes, against := 0, 0
	for i := range s.node {
		n := &s.node[i]
		switch {
		case n[mute]>>k&1 == 1:
		case n[answers+k] == yes:
			votes++
		case n[answers+k] == gone:
			against++
		}
	}
	s.open = false
	if votes >= majority && s.reaches > 0 && (s.until > 0 || w.late) {
		next := s
		next.until = s.reaches
		next.won |= 1 << k
		if s.held {
			emit(next, "a lock is extended that another client has held meanwhile")
		}
		emit(next, "")
	}
	if against > nodes-majority {
		next := s
		next.until = 0
		emit(next, "")
	}
	emit(s, "") // the nodes' time to answer is up
}

// repair sends a node the key, if allowed.
func (w *world) repair(s *state, n *node, k uint8) {
	if s.until == 0 || s.released && !w.rules.released {
		return
	}
	n.push(queue, inLine, repair+k*(ttl+1)+s.until)
}

// stepsOfHolder is the possible steps of client 1.
func (w *world) stepsOfHolder(s state, emit func(state, string)) {
	if s.live() && !s.open && int(s.extends) < w.extends {
		next := s
		k := next.extends
		next.extends++
		next.open, next.reaches = true, ttl
		for i := range next.node {
			n := &next.node[i]
			n.push(queue, inLine, extend+k)
			if n[quarantine] > 0 {
				n[mute] |= 1 << k
			}
		}
		emit(next, "")
	}
	if s.open {
		w.verdict(s, emit)
	}
	if !s.released {
		next := s
		next.released, next.open = true, false
		for i := range next.node {
			next.node[i].push(queue, inLine, delete)
		}
		emit(next, "")
	}
}

// stepsOf is the possible steps of another client.
func (w *world) stepsOf(s state, o int, emit func(state, string)) {
	mine := orders + 2*o
	switch s.other[o].phase {
	case outside:
		next := s
		next.other[o] = other{acquiring, ttl}
		for i := range next.node {
			n := &next.node[i]
			n.push(mine, 2, set)
			if n[quarantine] > 0 {
				n[vote+o] = unasked
			}
		}
		emit(next, "")
	case acquiring, holding:
		if s.other[o].phase == acquiring && s.mayWin(o) {
			break
		}
		next := s
		next.other[o] = other{away, 0}
		for i := range next.node {
			next.node[i].push(mine, 2, delete)
			next.node[i][vote+o] = 0
		}
		emit(next, "")
	}
	for i := range s.node {
		if s.node[i][mine] == 0 {
			continue
		}
		next := s
		broken := next.executeOf(i, o)
		emit(next, broken)
	}
}

// mayWin reports whether an acquire of another client may still win.
func (s *state) mayWin(o int) bool {
	votes := 0
	for i := range s.node {
		if v := s.node[i][vote+o]; v == 0 || v == granted {
			votes++
		}
	}
	return votes >= majority && s.other[o].left > 0
}

// settle drops data without further effect, for fewer states. It returns false where nothing can be
// broken any more.
func (w *world) settle(s *state) bool {
	if !s.open {
		s.reaches = 0
	}
	repairs := false
	for i := range s.node {
		n := &s.node[i]
		for k := range s.extends {
			open := s.open && k == s.extends-1
			mayRepair := s.won>>k&1 == 1 && s.until > 0 && (!s.released || w.rules.released)
			repairs = repairs || mayRepair && n[answers+k] == gone
			if !open {
				n[mute] &^= 1 << k
			}
			if !open && (n[answers+k] == yes || n[answers+k] == gone && !mayRepair) {
				n[answers+k] = over
			}
		}
		repairs = repairs || slices.Max(n[queue:queue+inLine]) >= repair
	}
	slices.SortFunc(s.node[:], func(a, b node) int { return bytes.Compare(a[:], b[:]) })
	return s.live() || s.open && w.late || repairs || others > 1
}

// executeOf has a node execute the next command of another client, with its reply at once.
func (s *state) executeOf(i, o int) (broken string) {
	n, who := &s.node[i], uint8(o+2)
	if n.pop(orders+2*o, 2) == delete {
		n.del(who)
		return ""
	}
	ok := n.put(who, ttl, false)
	if s.other[o].phase != acquiring || n[vote+o] == unasked {
		return ""
	}
	if n[vote+o] = refused; ok {
		n[vote+o] = granted
	}
	votes := 0
	for i := range s.node {
		if s.node[i][vote+o] == granted {
			votes++
		}
	}
	if votes < majority || s.other[o].left == 0 {
		return ""
	}
	s.other[o].phase = holding
	s.held = true
	for another := range s.other {
		if x := s.other[another]; another != o && x.phase == holding && x.left > 0 {
			return "two hold the lock"
		}
	}
	if s.live() {
		return "two hold the lock"
	}
	return ""
}
