package engine

// submitted notes what is about to be queued. It may never be sent.
func (c *checker) submitted(cl *client, l *lock, kind Kind) {
	sent := &c.sent[cl.index][l.key]
	if *sent = append(*sent, asked{kind, l.number}); kind == Release && l.over && l.ends == 0 {
		l.ends = len(*sent)
	}
}

// order checks that a master does what one connection asks for one key in the
// order of submission. An errand, a second try or a handed-off release, is out of
// that order. A renewal may come before what was submitted before it, but not after a
// release of its lock.
func (c *checker) order(m *master, p *pipe, cmd *sentCommand) {
	if cmd.errand {
		return
	}
	for i, key := range cmd.keys {
		if cmd.kind == Release && c.lock(cmd.locks[i]).loose {
			continue
		}
		sent, at := c.sent[p.link.fleet.client.index][key], &p.reach[key]
		from := min(*at, len(sent)) // beyond, once something has failed
		if l := c.lock(cmd.locks[i]); cmd.kind == Extend && l.kept {
			if l.ends > 0 && from >= l.ends {
				c.failf("order", "master %d: lock %d is extended behind its release", m.index, cmd.locks[i])
			}
			continue
		}
		for *at < len(sent) && sent[*at] != (asked{cmd.kind, cmd.locks[i]}) {
			*at++
		}
		if *at++; *at > len(sent) {
			c.failf("order", "master %d: %s of lock %d came out of order; %v expected", m.index, cmd.kind, cmd.locks[i], sent[from:])
		}
	}
}
