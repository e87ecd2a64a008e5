package quorum

// MaxNodes is the largest number of nodes of a round. It is the number of bits
// in the words that hold the votes; deployments have three to seven.
const MaxNodes = 64

// Size returns how many of n configured nodes make a quorum: n/2 + 1, the
// smallest number of nodes such that any two quorums share a node. n is the number of
// configured nodes, never of those that are up, and at least 1. The other n - Size(n)
// may fail: an even n tolerates no more failures than n - 1.
//
// Source: "The Redlock Algorithm", step 3, "in the majority of the instances".
func Size(n int) int { return n/2 + 1 }
