package engine

import "slices"

// submitted notes what is about to be queued. It may never be sent.
func (c *checker) submitted(cl *client, l *lock, kind Kind) {
	c.sent[cl.index][l.key] = append(c.sent[cl.index][l.key], asked{kind, l.number})
}

// order checks that a master does what one connection asks for one key in the
// order of submission. An errand, a second try or a handed-off release, is out of
// that order. A renewal may come before what was submitted before it, but not behind a
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
		if cmd.kind == Extend && c.lock(cmd.locks[i]).kept {
			if slices.Contains(sent[:from], asked{Release, cmd.locks[i]}) {
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
