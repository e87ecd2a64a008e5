package quorum

// MaxNodes is the largest number of nodes of a round. It is the number of bits
// in the word that has the votes; deployments have three to seven.
const MaxNodes = 64

// Size returns how many of n configured nodes make a quorum: n/2 + 1, the
// smallest number of which two disjoint sets do not fit into n. It counts the
// nodes that are configured, never those that happen to be up. n is at least 1.
//
// Source: "The Redlock Algorithm", step 3, "in the majority of the instances".
func Size(n int) int { return n/2 + 1 }

// Tolerates returns how many of n nodes may fail while the others still make a
// quorum: n - Size(n). An even n tolerates no more than the odd number below
// it, and so pays for one node more without getting anything for it. n is at
// least 1.
func Tolerates(n int) int { return n - Size(n) }
