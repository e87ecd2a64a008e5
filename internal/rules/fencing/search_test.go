package fencing_test

import (
	"fmt"
	"slices"
	"strings"
)

// arena knows the states found, by their numbers in the order of a breadth-first search, with the predecessor of each.
type arena struct {
	numbers map[key]int32
	parents []int32
}

// add reports whether a state is new.
func (a *arena) add(k key, parent int) bool {
	if _, is := a.numbers[k]; is {
		return false
	}
	a.numbers[k] = int32(len(a.parents))
	a.parents = append(a.parents, int32(parent))
	return true
}

func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// result is the result of a search.
type result struct {
	states int
	depth  int      // of an interrupted search: traces up to it break nothing
	trace  []action // to the state where the property breaks
	first  state    // where it begins
	broken string
	whole  bool            // all states were visited
	seen   [len(texts)]int // actions, by kind
}

// search visits all states breadth first, up to the first state in which the property breaks: its trace is one of the
// shortest.
func (w *world) search() (r result) {
	w.begin()
	found := &arena{numbers: map[key]int32{}}
	var queue [][]state // those that were found and not visited, in pieces, so that what was visited goes
	visit := func(s state, from int) {
		if !found.add(w.key(&s), from) {
			return
		}
		last := len(queue) - 1
		if last < 0 || len(queue[last]) == cap(queue[last]) {
			queue = append(queue, make([]state, 0, 1<<10))
			last++
		}
		queue[last] = append(queue[last], s)
	}
	for _, s := range w.starts() {
		visit(s, -1)
	}
	m := &stepper{world: w}
	for i := 0; i < len(found.parents); i++ {
		if w.limit > 0 && len(found.parents) >= w.limit {
			for r.states = len(found.parents); found.parents[i] >= 0; i = int(found.parents[i]) {
				r.depth++
			}
			return r
		}
		s := queue[0][0]
		if queue[0] = queue[0][1:]; len(queue[0]) == 0 {
			queue = queue[1:]
		}
		if w.live && m.stuck(&s) {
			return w.retrace(found, i)
		}
		for _, x := range m.next(&s) {
			r.seen[x.action.kind]++
			if x.broken != "" {
				return w.retrace(found, i)
			}
			if !w.everyPath && !w.open(&x.after) {
				continue
			}
			visit(x.after, i)
		}
	}
	r.states, r.whole = len(found.parents), true
	return r
}

// retrace goes to state number end again, and one step beyond, with the original names of nodes and clients, since a
// key has lost them.
func (w *world) retrace(found *arena, end int) (r result) {
	r.states = len(found.parents)
	var path []int32
	for i := int32(end); i >= 0; i = found.parents[i] {
		path = append(path, i)
	}
	slices.Reverse(path)
	starts := w.starts()
	s := starts[slices.IndexFunc(starts, func(s state) bool { return found.numbers[w.key(&s)] == path[0] })]
	r.first = s
	m := &stepper{world: w}
	for _, p := range path[1:] {
		steps := m.next(&s)
		at := slices.IndexFunc(steps, func(x step) bool { return x.broken == "" && found.numbers[w.key(&x.after)] == p })
		if at < 0 {
			panic("a state has no way to the one that was reached from it")
		}
		r.trace = append(r.trace, steps[at].action)
		s = steps[at].after
	}
	if w.live && m.stuck(&s) {
		r.broken = stuck
		return r
	}
	for _, x := range m.next(&s) {
		if x.broken != "" {
			r.trace, r.broken = append(r.trace, x.action), x.broken
			return r
		}
	}
	panic("the last step is missing")
}

const stuck = "a majority votes, and does not lock a free key with the second attempt"

// describe writes a trace, with the state after each step.
func (w *world) describe(r result) string {
	var text strings.Builder
	text.WriteString("proposed tokens:")
	for _, a := range r.first.attempts[:w.attempts] {
		fmt.Fprintf(&text, " %d", a.token)
		if w.to != 0 {
			fmt.Fprintf(&text, "/%d", a.step)
		}
	}
	text.WriteByte('\n')
	s := r.first
	m := &stepper{world: w}
	for _, a := range r.trace {
		for _, x := range m.next(&s) {
			if x.action == a {
				s = x.after
				break
			}
		}
		fmt.Fprintf(&text, "%-62s | %s\n", a, w.show(&s))
	}
	return text.String()
}

// show writes a state as a line: nodes, attempts with tokens, clients.
func (w *world) show(s *state) string {
	var text strings.Builder
	for i, n := range s.nodes[:w.nodes] {
		fmt.Fprintf(&text, "n%d:%s F%d", i, [...]string{"absent", "active", "prov", "outdated", "next", "both", "sealed", "sealed back", "prov next", "prov both"}[n.marker], n.f)
		if n.floor > 0 {
			fmt.Fprintf(&text, "/%d", n.floor)
		}
		text.WriteByte(' ')
	}
	for k, a := range s.attempts[:w.attempts] {
		fmt.Fprintf(&text, " a%d(%d):%s", k, a.token,
			[...]string{"-", "running", "succeeded", "ended"}[a.phase])
	}
	for r, k := range s.clients[:w.clients] {
		if k.phase != idle {
			fmt.Fprintf(&text, "  c%d:%s n%d floor %d", r, [...]string{"", "sent", "waits", "reads"}[k.phase], k.node, k.floor)
		}
	}
	return text.String()
}
