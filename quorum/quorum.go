package quorum

// MaxNodes is the largest number of nodes of a round, the number of bits in a word of votes; deployments have three
// to seven.
const MaxNodes = 64

// Size returns how many of n configured nodes make a quorum: n/2 + 1, the smallest number for any two quorums to
// share a node. n counts the configured nodes, up or not, and is at least 1. The other n - Size(n) may fail: an even
// n tolerates no more failures than n - 1.
//
// Source: "The Redlock Algorithm", step 3, "in the majority of the instances".
func Size(n int) int { return n/2 + 1 }
