package quorum_test

import (
	"testing"

	"github.com/redlock-go/redlock/quorum"
)

// FuzzTally reads the number of nodes less one from the first byte and a vote from each
// pair after it, a node (as a signed byte, so that some are outside the round)
// and an outcome (so that some are none), and holds the tally to the oracle
// after every vote. The corpus is in testdata/fuzz.
func FuzzTally(f *testing.F) {
	f.Add([]byte{2, 0, 1, 1, 1})
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) == 0 || len(script) > 1+4*quorum.MaxNodes {
			return
		}
		n := int(script[0])%quorum.MaxNodes + 1
		o := oracle{n: n}
		var tally quorum.Tally
		tally.Reset(first(n))
		last := quorum.Pending
		for votes := script[1:]; len(votes) >= 2; votes = votes[2:] {
			node, outcome := int(int8(votes[0])), quorum.Outcome(votes[1])
			o.record(node, outcome)
			got := tally.Record(node, outcome)
			if last != quorum.Pending && got != last {
				t.Fatalf("verdict went from %v to %v (n=%d, votes %v)", last, got, n, o.votes)
			}
			last = got
			if diff := o.differs(&tally); diff != "" {
				t.Fatal(diff)
			}
		}
	})
}
