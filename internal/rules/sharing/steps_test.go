package sharing_test

import "fmt"

// event turns one state into another, by an actor at a node; -1: no actor, no node.
type event struct {
	what        string
	actor, node int8
}

func (e event) String() string { return fmt.Sprintf("%s (actor %d, node %d)", e.what, e.actor, e.node) }

func (w *world) steps(s *state, see func(next *state, e event)) {
	try := func(actor, node int, what string, do func(t *state) bool) {
		if t := *s; w.fails == "" && do(&t) {
			see(&t, event{what, int8(actor), int8(node)})
		}
	}
	try(-1, -1, "tick", func(t *state) bool { w.tick(t); return *t != *s })
	for i := range w.actors() {
		w.act(s, i, func(what string, do func(t *state, a *actor) bool) {
			try(i, -1, what, func(t *state) bool { return do(t, &t.actors[i]) })
		})
		for k := range w.nodes {
			if p := &s.nodes[k].at[i]; p.acquire || p.release || p.extend || p.repair {
				w.execute(s, i, k, func(what string, do func(n *node, p *at) bool) {
					try(i, k, what, func(t *state) bool { return do(&t.nodes[k], &t.nodes[k].at[i]) })
				})
			}
		}
	}
	for k := range w.nodes {
		if s.losses < w.losses {
			try(-1, k, "a node restarts without its keys", func(t *state) bool {
				n := &t.nodes[k]
				for i := range n.at {
					n.at[i].entry = 0
				}
				n.key, n.forgetful = 0, ttl
				t.losses++
				return true
			})
		}
	}
}

// leave ends an attempt, or a lock: its release is sent to all.
func (w *world) leave(t *state, i int) {
	t.actors[i].phase = over
	for k := range w.nodes {
		t.nodes[k].at[i].release = true
	}
}

func (w *world) tick(t *state) {
	for i := range w.actors() {
		a := &t.actors[i]
		if a.valid > 0 {
			a.valid--
			switch {
			case a.valid > 0:
			case a.phase == holds && a.extending && w.lacks == extendsInTime:
				a.phase = late
			case a.phase == holds, a.phase == asks:
				w.leave(t, i)
			}
		}
		if a.extension > 0 {
			a.extension--
		}
	}
	for k := range w.nodes {
		n := &t.nodes[k]
		n.forgetful, n.key = max(n.forgetful, 1)-1, max(n.key, 1)-1
		for i := range w.actors() {
			e := &n.at[i].entry
			if *e > 0 && *e != ended {
				*e--
				if *e == 0 && w.reads(i) {
					*e = ended
				}
			}
			if w.reads(i) && n.key == 0 {
				*e = 0
			}
		}
	}
}

func (w *world) act(s *state, i int, try func(string, func(*state, *actor) bool)) {
	a := s.actors[i]
	switch {
	case a.phase == idle:
		for short := range uint8(2) {
			if short == 0 || w.mixed {
				try("asks", func(t *state, a *actor) bool {
					*a = actor{phase: asks, ttl: ttl - short, valid: ttl - short}
					for k := range w.nodes {
						t.nodes[k].at[i].acquire = w.asked(i, k)
					}
					return true
				})
			}
		}
	case a.phase == asks:
		try("holds", func(t *state, a *actor) bool {
			a.phase = holds
			for j := range w.actors() {
				if t.actors[j].phase == late && w.excludes(i, j) {
					t.actors[j].broken = true // another has held the lock since
				}
			}
			return w.hasQuorum(t, i, func(p *at) bool { return p.granted })
		})
	case a.phase == holds && !a.extending && a.extends < w.extends:
		try("sends an extend", func(t *state, a *actor) bool {
			a.extends++
			a.extending, a.extension = true, a.ttl
			for k := range w.nodes {
				p := &t.nodes[k].at[i]
				p.extend, p.extended, p.missing = true, false, false
			}
			return true
		})
	}
	if a.phase == holds || a.phase == asks {
		try("leaves", func(t *state, _ *actor) bool { w.leave(t, i); return true })
	}
	if a.extending && a.extension > 0 && (a.phase == holds || a.phase == late) {
		try("is extended", func(t *state, a *actor) bool {
			if !w.hasQuorum(t, i, func(p *at) bool { return p.extended }) {
				return false
			}
			if a.broken {
				w.fails = "a lock goes on that was broken, or another's since"
			}
			a.phase, a.valid, a.extending, a.extension = holds, max(a.valid, a.extension), false, 0
			a.left = a.valid
			for k := range w.nodes {
				p := &t.nodes[k].at[i]
				p.repair = p.repair || p.missing
				p.extended, p.missing = false, false
			}
			return true
		})
	}
	if a.phase == holds && a.extending {
		try("gives its extend up", func(t *state, a *actor) bool {
			a.extending = false
			for k := range w.nodes {
				t.nodes[k].at[i].extended, t.nodes[k].at[i].missing = false, false
			}
			return true
		})
	}
	if w.breaks && a.phase == holds && !a.extending && !a.broken {
		try("is broken by an operator", func(t *state, a *actor) bool {
			a.broken = true
			for k := range w.nodes {
				n := &t.nodes[k]
				n.at[i].entry, n.at[i].extend = 0, false
				if w.reads(i) {
					w.settle(n)
				}
			}
			return true
		})
	}
}

// execute runs a request of an actor at a node.
func (w *world) execute(s *state, i, k int, try func(string, func(*node, *at) bool)) {
	a := &s.actors[i]
	votes := func(n *node) bool { return n.forgetful == 0 || w.lacks == quarantine }
	p := &s.nodes[k].at[i]
	if p.acquire {
		try("acquire", func(n *node, p *at) bool {
			p.acquire = false
			if w.add(n, i, a.ttl) && votes(n) && a.phase == asks {
				p.granted = true
			}
			return true
		})
	}
	if p.release && p.entry > 0 {
		try("release", func(n *node, p *at) bool {
			p.release, p.entry = false, 0
			if w.lacks == oneRelease {
				for j := range w.readers {
					n.at[j].entry = 0
				}
			}
			if w.reads(i) && w.lacks != keysEndEarlier {
				w.settle(n)
			}
			return true
		})
	}
	if p.extend {
		try("extend", func(n *node, p *at) bool {
			p.extend = false
			lives := p.entry > 0 && p.entry != ended
			if !lives && w.lacks == confirmedRepairs {
				lives = w.add(n, i, a.ttl)
			}
			if !lives {
				p.missing = a.extending
				return true
			}
			p.entry = max(p.entry, a.ttl)
			if w.reads(i) {
				w.settle(n)
			}
			p.extended = a.extending && votes(n)
			return true
		})
	}
	if p.repair {
		try("repair", func(n *node, p *at) bool {
			p.repair = false
			w.add(n, i, a.left)
			return true
		})
	}
}
