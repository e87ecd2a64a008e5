package quorum_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/redlock-go/redlock/quorum"
)

func ExampleSet() {
	up := quorum.First(5)
	up.Remove(1)
	fmt.Println(up.Len(), up.Has(1), up.Least(), slices.Collect(up.All()))
	fmt.Println(quorum.Majority(quorum.First(5)).IsQuorum(up &^ quorum.Only(4)))
	// Output:
	// 4 false 0 [0 2 3 4]
	// true
}

// A round over five nodes ends with the third grant. Later votes cannot change it, and the record keeps them: it says
// which keys are to be released.
func ExampleTally() {
	var tally quorum.Tally
	tally.Reset(quorum.Majority(0b11111))
	fmt.Println(tally.Record(3, quorum.Granted))
	fmt.Println(tally.Record(0, quorum.Failed))
	fmt.Println(tally.Record(1, quorum.Granted))
	fmt.Println(tally.Record(4, quorum.Granted))
	fmt.Println(tally.Record(2, quorum.Denied), tally.Count(quorum.Granted), tally.Outcome(2))
	// Output:
	// pending
	// pending
	// pending
	// won
	// won 3 denied
}

// A lock asked for 10 s is good for 9.898 s, counted from before the round was sent.
func ExampleUntil() {
	const ttl = 10 * time.Second
	start := 3 * time.Second // read before the first byte was sent
	fmt.Println(quorum.Drift(ttl), quorum.Until(start, ttl))
	// Output: 102ms 12.898s
}

// An even number of nodes tolerates no more failures than one node less.
func ExampleSize() {
	for _, n := range []int{1, 2, 3, 4, 5, 64} {
		fmt.Println(n, "nodes: quorum", quorum.Size(n), "tolerates", n-quorum.Size(n))
	}
	// Output:
	// 1 nodes: quorum 1 tolerates 0
	// 2 nodes: quorum 2 tolerates 0
	// 3 nodes: quorum 2 tolerates 1
	// 4 nodes: quorum 3 tolerates 1
	// 5 nodes: quorum 3 tolerates 2
	// 64 nodes: quorum 33 tolerates 31
}
