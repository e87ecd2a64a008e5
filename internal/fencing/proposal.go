package fencing

// Clock is a client's time in µs, corrected by what nodes said. Tokens need no right clock:
// one that is off costs a second attempt, and the correction saves it for the attempts that
// follow. A Clock has no lock.
type Clock struct{ shift int64 }

// Now returns the corrected time. own is the client's clock.
func (c *Clock) Now(own uint64) uint64 {
	own = min(own, MaxToken)
	if c.shift < 0 {
		return own - min(own, uint64(-c.shift))
	}
	return min(own+uint64(c.shift), MaxToken)
}

func (c *Clock) set(own, now uint64) {
	c.shift = int64(min(now, MaxToken)) - int64(min(own, MaxToken))
}

// Proposal is the tokens that one call proposes for one key, attempt by attempt. The zero
// value knows of no token.
type Proposal struct{ above, present uint64 }

// Learn takes notice of the answer of a node to the last attempt: Stale and Held tell the
// token that must be exceeded, Ahead tells the node's present.
func (p *Proposal) Learn(a Answer) {
	switch {
	case a.Token >= MaxToken: // there is none above
	case a.Code == Stale, a.Code == Held:
		p.above = max(p.above, a.Token)
	case a.Code == Ahead:
		p.present = max(p.present, a.Token)
	}
}

// Next returns the block of the next attempt, k tokens from max(now, above+1) on, by the
// client's clock, which reads own. It returns false where there is no room below MaxToken.
//
// After Ahead the block begins right above the latest present of a node that answered so:
// that is above its E too, and not ahead of it. Larger tokens that were seen are left
// aside. They were accepted by nodes whose clocks are far ahead, or were once; nodes that
// have none of them make a quorum, or answer Stale.
func (p *Proposal) Next(c *Clock, own uint64, k int) (b Block, ok bool) {
	now := c.Now(own)
	switch {
	case p.present != 0:
		b.First = p.present + 1
		if now > b.First {
			c.set(own, b.First)
		}
	case p.above >= now:
		b.First = p.above + 1
		c.set(own, b.First)
	default:
		b.First = now
	}
	if k < 1 || b.First > MaxToken || uint64(k)-1 > MaxToken-b.First {
		return Block{}, false
	}
	b.Last = b.First + uint64(k) - 1
	p.above, p.present = b.Last, 0 // a node may have recorded it, and tells only how far others are
	return b, true
}
