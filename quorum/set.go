package quorum

import (
	"iter"
	"math/bits"
	"sync/atomic"
)

// Set is a set of nodes, by their numbers below MaxNodes. It is a value of one word: a | b are the nodes of either, a
// & b the nodes of both, a &^ b the nodes of a alone. The zero Set is empty.
type Set uint64

// Everything has every number.
const Everything = ^Set(0)

// Only returns the set of one node.
func Only(node int) Set { return 1 << uint(node) }

// First returns the set of the first n nodes.
func First(n int) Set { return 1<<uint(n) - 1 }

// Has reports whether a node is in the set.
func (s Set) Has(node int) bool { return s>>uint(node)&1 != 0 }

// Add puts a node into the set.
func (s *Set) Add(node int) { *s |= Only(node) }

// Remove takes a node out of the set.
func (s *Set) Remove(node int) { *s &^= Only(node) }

// Len returns the number of nodes in the set.
func (s Set) Len() int { return bits.OnesCount64(uint64(s)) }

// Least returns the lowest number in the set, or MaxNodes.
func (s Set) Least() int { return bits.TrailingZeros64(uint64(s)) }

// All returns the numbers in the set, the lowest first.
func (s Set) All() iter.Seq[int] {
	return func(yield func(int) bool) {
		for ; s != 0 && yield(s.Least()); s &= s - 1 {
		}
	}
}

// SharedSet is a Set changed by several goroutines. The zero SharedSet is empty.
type SharedSet struct{ word atomic.Uint64 }

// Load returns the nodes in the set now.
func (s *SharedSet) Load() Set { return Set(s.word.Load()) }

// Has reports whether a node is in the set now.
func (s *SharedSet) Has(node int) bool { return s.Load().Has(node) }

// Add puts a node into the set, and reports whether it was not there.
func (s *SharedSet) Add(node int) bool { return !Set(s.word.Or(uint64(Only(node)))).Has(node) }

// Remove takes a node out of the set, and reports whether it was there.
func (s *SharedSet) Remove(node int) bool { return Set(s.word.And(^uint64(Only(node)))).Has(node) }

// Swap replaces the set by another, and returns the old one.
func (s *SharedSet) Swap(to Set) Set { return Set(s.word.Swap(uint64(to))) }
