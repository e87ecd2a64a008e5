package fencing

// FirstTime is the earliest time, in µs, that a client's clock may read: the year 2020. A clock is wrong if it reads an
// earlier time, or leaves no room for a block below MaxToken. No token is made from a wrong one.
const FirstTime = 1_577_836_800_000_000

// Proposal holds the tokens proposed by one call for one key, attempt by attempt. The zero value knows of no token.
type Proposal struct {
	above Token
	row   int // of attempts advised to be made again
}

// maxRow is the number of attempts in a row without a pause. Without rivals for the lock, two suffice.
const maxRow = 4

// Learn takes notice of a node's answer to the last attempt: Stale, Low and Held have the token to exceed. Only the
// proposal of this call is raised, not the client's clock, since this would carry each raise into all later tokens.
func (p *Proposal) Learn(a Answer) {
	if (a.Code == Stale || a.Code == Low || a.Code == Held) && a.Token < MaxToken { // there is none above MaxToken
		p.above = max(p.above, a.Token)
	}
}

// Next returns the block of the next attempt, k tokens from max(now, above+1) on. now is the client's time in µs. ok is
// false without room below MaxToken.
func (p *Proposal) Next(now uint64, k int) (b Block, ok bool) {
	b.First = max(Token(now), p.above+1)
	if k < 1 || b.First > MaxToken || Token(k)-1 > MaxToken-b.First {
		return Block{}, false
	}
	b.Last = b.First + Token(k) - 1
	p.Exceed(b)
	return b, true
}

// Again reports whether an attempt with this advice is made again at once.
func (p *Proposal) Again(a Advice) bool {
	p.row++
	if a != Again || p.row == maxRow {
		p.row = 0
		return false
	}
	return true
}

// Exceed makes the next attempt propose more than b. Nodes may have recorded the block of an attempt unknown to its
// client.
func (p *Proposal) Exceed(b Block) { p.above = max(p.above, b.Last) }

// Block holds the tokens First to Last of one lease, one for each of its holders in turn. Their number is fixed when the
// lock is acquired: every node has recorded Last.
//
// A hand-over takes the next token, without contact to the nodes. So no two holders share a token, and an attempt
// started after this one succeeded has only tokens larger than all of this block. A late holder, after a grant to
// another client, has the smaller token, and is refused by a resource that refuses smaller tokens. To put every single
// holder in order, even one that has lost the lease unnoticed, takes more: a quorum of extends sent after the hand-over
// began must confirm that the key still has the nonce.
type Block struct{ First, Last Token }

// Spare is the number of tokens beside the first.
func (b Block) Spare() Token { return b.Last - b.First }
