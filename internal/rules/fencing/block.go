package fencing

// Block is the tokens First to Last of one lease, one for each of its holders in turn. Their number is fixed when the
// lock is acquired: every node has recorded Last.
//
// A hand-over takes the next token, without contact to the nodes. This gives: no two holders share a token, and an
// attempt started after this one succeeded has only tokens larger than all of this block. A late holder, after a grant
// to another client, has the smaller token, so a resource refuses it if it refuses smaller tokens. An order of every
// single holder, also of one that has lost the lease unnoticed, needs more: a quorum of extends sent after the
// hand-over began must confirm that the key still has the nonce.
type Block struct{ First, Last Token }

// Spare is the number of its tokens beside the first.
func (b Block) Spare() Token { return b.Last - b.First }
