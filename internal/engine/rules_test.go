package engine

import "time"

// rules are what may happen in a world. The zero rules have no faults; those of
// inModel are all that the algorithm must survive. What the others break is
// outside of its model, or is a bug put in on purpose: they are here to show
// that the checker sees it.
type rules struct {
	name   string
	nodes  int // 0: random
	faults []fault

	// Outside the model.
	forgets   bool // restarts lose the keys
	guard     bool // but a node that has restarted has no vote for a while
	overstays bool // holders believe in twice the validity
	halves    bool // clients have different ideas of which nodes there are

	// Bugs put in on purpose.
	liar         bool // a master grants what it should deny
	blindRelease bool // releases do not compare the token
	blindExtend  bool // extends do not compare the token
	backwards    bool // a master runs what one write brings in reverse
	noCleanup    bool // releases are answered and not done
	rudeDialer   bool // a dialer gives the driver lock up and looks at nothing
	loseFail     bool // a connection dies and its owners are not notified
	crossed      bool // a reply is given to the next one
	deafCancel   bool // a caller forgets that its Cancel succeeded
	eternal      bool // keys have no TTL
	tampers      bool // a batch is written to while it is out
	forgetful    bool // what a lost connection owes is not released later

	contagious bool // a master that refuses one key refuses the next command too

	wild    bool // callbacks submit again at once and cancel others' operations
	many    bool // several extends of a lock at once
	brief   bool // no TTL is above longestHeld
	shrinks bool // extends ask for shorter TTLs too
}

type fault func(w *world)

// scheduleFault lets faults happen, at random, until the end.
func (w *world) scheduleFault(end time.Duration) {
	if len(w.rules.faults) == 0 {
		return
	}
	w.after(w.between(time.Millisecond, 60*time.Millisecond), func() {
		if w.ending || w.now() > end {
			return
		}
		faults := w.rules.faults
		if w.theme > 0 {
			faults = faults[w.theme-1:][:1]
		}
		faults[w.IntN(len(faults))](w)
		w.scheduleFault(end)
	})
}

// inModel is all that the algorithm must survive.
func inModel() rules {
	return rules{name: "model", wild: true, many: true, faults: []fault{
		loseConnection, loseConnection, hang, slowDown, restart, flushScripts, flushAll, flicker, flicker, flicker,
		restrict, restrict, parts, outage, forbidNative, complain, stall, speakNonsense, closeClient, freeze,
	}}
}

func (w *world) anyMaster() *master { return w.masters[w.IntN(len(w.masters))] }

func (w *world) anyLink() *link {
	f := w.clients[w.IntN(len(w.clients))].fleet
	return f.links[w.IntN(len(f.links))]
}

func loseConnection(w *world) { w.anyLink().lose() }

// hang stops a master: what is sent to it waits.
func hang(w *world) {
	m, d := w.anyMaster(), w.between(time.Millisecond, 150*time.Millisecond)
	w.note("hang", m.index, int(d), 0)
	m.hungUntil = max(m.hungUntil, w.now()+d)
}

// slowDown makes the way to a master longer.
func slowDown(w *world) {
	m := w.anyMaster()
	m.slow = w.between(0, 20*time.Millisecond) * time.Duration(w.IntN(2))
	w.note("slow", m.index, int(m.slow), 0)
}

func restart(w *world) {
	m := w.anyMaster()
	m.restart(w.between(0, 100*time.Millisecond))
}

func flushScripts(w *world) {
	m := w.anyMaster()
	w.note("flush", m.index, 0, 0)
	m.scripts = loaded{}
}

// flushAll makes every master forget the scripts.
func flushAll(w *world) {
	w.note("flush all", 0, 0, 0)
	for _, m := range w.masters {
		m.scripts = loaded{}
	}
}

// flicker is a slow network, on which all masters refuse extends at moments: they
// forget the scripts, or are short of memory. What they refuse is asked again after
// what has been asked since.
func flicker(w *world) {
	w.note("flicker", 0, 0, 0)
	d := w.between(10*time.Millisecond, 60*time.Millisecond)
	for _, m := range w.masters {
		m.slow = w.between(500*time.Microsecond, 6*time.Millisecond)
		w.after(d, func() { m.slow = 0 })
	}
	for range 2 + w.IntN(6) {
		end, memory := w.between(100*time.Microsecond, 3*time.Millisecond), w.chance(50)
		w.after(w.between(0, d), func() {
			for _, m := range w.masters {
				if memory {
					m.mood, m.moodUntil = "OOM command not allowed when used memory > 'maxmemory'.", w.now()+end
					continue
				}
				m.scripts = loaded{}
				w.after(end, func() { m.scripts = both })
			}
		})
	}
}

// restrict changes the access lists of some masters, or of all: a client may not
// acquire, release or extend a key, or may again.
func restrict(w *world) {
	c, key, all := w.IntN(len(w.clients)), w.IntN(w.check.keys), w.chance(60)
	bars := barred{w.chance(30), w.chance(40), w.chance(40)}
	w.note("restrict", c, key, 0)
	for _, m := range w.masters {
		if all || w.chance(50) {
			m.barred[c][key] = bars
		}
	}
}

// parts lets the replies of a master come in parts, some of them very late.
func parts(w *world) {
	m := w.anyMaster()
	m.partsUntil = w.now() + w.between(0, 40*time.Millisecond)
	w.note("parts", m.index, int(m.partsUntil), 0)
}

// outage takes so many masters away that there is no quorum, and brings them back
// together.
func outage(w *world) {
	d, silent := w.between(time.Millisecond, 60*time.Millisecond), w.chance(40)
	n := len(w.masters)/2 + 1 + w.IntN(len(w.masters)-len(w.masters)/2)
	w.note("outage", n, int(d), 0)
	for _, i := range w.Perm(len(w.masters))[:n] {
		if m := w.masters[i]; silent {
			m.hungUntil = max(m.hungUntil, w.now()+d)
		} else {
			m.restart(d)
		}
	}
}

// forbidNative takes a master's native commands away, or gives them back.
func forbidNative(w *world) {
	m := w.anyMaster()
	w.note("forbid", m.index, 0, 0)
	m.forbids = !m.forbids
}

// complain makes a master answer with errors for a while.
func complain(w *world) {
	m := w.anyMaster()
	m.mood = [...]string{
		"LOADING Redis is loading the dataset in memory",
		"OOM command not allowed when used memory > 'maxmemory'.",
		"READONLY You can't write against a read only replica.",
		"ERR Error running script (call to f_x): @user_script:2: -MISCONF Errors writing",
		"BUSY Redis is busy running a script.",
	}[w.IntN(5)]
	m.moodUntil = w.now() + w.between(0, 50*time.Millisecond)
	w.note("mood", m.index, int(m.mood[0]), 0)
}

// stall fills a kernel buffer: what is written waits.
func stall(w *world) { w.anyLink().stall(w.between(0, 60*time.Millisecond)) }

// speakNonsense makes a master's next reply one of the wrong type.
func speakNonsense(w *world) {
	m := w.anyMaster()
	m.nonsense++
	w.note("nonsense", m.index, 0, 0)
}

// freeze has a client's process stand still, for longer than some locks last.
func freeze(w *world) {
	w.clients[w.IntN(len(w.clients))].freeze(w.between(time.Millisecond, 150*time.Millisecond))
}

// closeClient ends a client, rarely.
func closeClient(w *world) {
	if c := w.clients[w.IntN(len(w.clients))]; w.chance(10) {
		c.kill()
	}
}
