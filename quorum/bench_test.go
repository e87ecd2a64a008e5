package quorum_test

import (
	"testing"

	"github.com/redlock-go/redlock/quorum"
)

// round is all that one attempt asks of a tally: a reset, votes that are not all alike, and the verdict.
func round(b *testing.B, c *quorum.Config, nodes int) {
	b.ReportAllocs()
	var tally quorum.Tally
	for b.Loop() {
		tally.Reset(c)
		for node := range nodes {
			tally.Record(node, outcomes[(node>>1)%3])
		}
		_ = tally.Verdict()
	}
}

func BenchmarkRound(b *testing.B) { round(b, first(5), 5) }

// BenchmarkJointRound is a round while the nodes change: a majority of the old ones and of the new ones.
func BenchmarkJointRound(b *testing.B) {
	round(b, quorum.Joint(first(5), quorum.Majority(0b11111<<2)), 7)
}
