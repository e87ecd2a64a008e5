package quorum_test

import (
	"fmt"
	"time"

	"github.com/redlock-go/redlock/quorum"
)

// A round over five nodes ends with the third grant. Later votes cannot change it.
func ExampleTally() {
	var tally quorum.Tally
	tally.Reset(quorum.Majority(0b11111))
	fmt.Println(tally.Record(3, quorum.Granted))
	fmt.Println(tally.Record(0, quorum.Failed))
	fmt.Println(tally.Record(1, quorum.Granted))
	fmt.Println(tally.Record(4, quorum.Granted))
	fmt.Println(tally.Record(2, quorum.Denied), tally.Count(quorum.Granted))
	// Output:
	// pending
	// pending
	// pending
	// won
	// won 3
}

// Two denials of three are enough to stop waiting for the third node. When it
// grants after all, the record says which key is to be released.
func ExampleTally_Record_late() {
	var tally quorum.Tally
	tally.Reset(quorum.Majority(0b111))
	tally.Record(0, quorum.Denied)
	fmt.Println(tally.Record(1, quorum.Denied))
	tally.Record(2, quorum.Granted)
	fmt.Println("node 2", tally.Outcome(2))
	// Output:
	// lost
	// node 2 granted
}

// A lock asked for 10 s is good for 9.898 s, counted from before the round was
// sent.
func ExampleUntil() {
	const ttl = 10 * time.Second
	start := 3 * time.Second // read before the first byte was sent
	fmt.Println(quorum.Drift(ttl))
	fmt.Println(quorum.Until(start, ttl))
	// Output:
	// 102ms
	// 12.898s
}

// An even number of nodes tolerates no more failures than one node less.
func ExampleSize() {
	for _, n := range []int{1, 2, 3, 4, 5} {
		fmt.Println(n, "nodes: quorum", quorum.Size(n), "tolerates", n-quorum.Size(n))
	}
	// Output:
	// 1 nodes: quorum 1 tolerates 0
	// 2 nodes: quorum 2 tolerates 0
	// 3 nodes: quorum 2 tolerates 1
	// 4 nodes: quorum 3 tolerates 1
	// 5 nodes: quorum 3 tolerates 2
}
