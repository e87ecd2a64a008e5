package fencing

// Block is the tokens First to Last of one lease, one for each of its holders in turn.
// How many there are is fixed when the lock is acquired: every node has recorded Last.
//
// A hand-over takes the next token, without contact to the nodes. That gives: no two
// holders share a token, and all tokens of an attempt that started after this one succeeded
// are larger than all of this block. A holder that comes late, after another client was
// granted the key, has the smaller token, and a resource that refuses smaller tokens refuses
// it. For an order of every single holder, also of one that has lost the lease unnoticed, a
// quorum of extends that were sent after the hand-over began must confirm that the key still
// has the nonce.
type Block struct{ First, Last uint64 }

func (b Block) valid() bool { return b.First > 0 && b.First <= b.Last && b.Last <= MaxToken }
