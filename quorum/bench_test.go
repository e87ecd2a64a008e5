package quorum_test

import (
	"fmt"
	"testing"

	"github.com/redlock-go/redlock/quorum"
)

// BenchmarkRound is all that one attempt asks of a tally: a reset, n votes that
// are not all alike, and the verdict.
func BenchmarkRound(b *testing.B) {
	for _, n := range []int{3, 5, 7} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			var tally quorum.Tally
			won, c := 0, first(n)
			for b.Loop() {
				tally.Reset(c)
				for node := range n {
					tally.Record(node, outcomes[(node>>1)%3])
				}
				if tally.Verdict() == quorum.Won {
					won++
				}
			}
		})
	}
}
