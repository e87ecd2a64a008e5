//go:build !race

package quorum_test

import (
	"testing"
	"time"

	"github.com/redlock-go/redlock/quorum"
)

// TestAllocatesNothing runs everything a lock needs of this package. It is not
// built with the race detector, which allocates on its own.
func TestAllocatesNothing(t *testing.T) {
	var sum int
	joint := quorum.Joint(quorum.Majority(0b0111), quorum.Majority(0b1110))
	var configs []*quorum.Config
	for n := 1; n <= 9; n++ {
		configs = append(configs, first(n))
	}
	got := testing.AllocsPerRun(1000, func() {
		var tally quorum.Tally
		for i, c := range configs {
			n := i + 1
			tally.Reset(c)
			for node := range n {
				sum += int(tally.Record(node, outcomes[(n+node)%3]))
				sum += len(tally.Outcome(node).String()) + len(tally.Verdict().String())
			}
			tally.Reset(joint)
			sum += int(tally.Record(1, quorum.Granted))
			sum += tally.Count(quorum.Granted) + tally.Count(0)
			sum += int(quorum.Until(time.Second, time.Duration(n)))
		}
	})
	if got != 0 {
		t.Errorf("%v allocations, want 0", got)
	}
	if sum == 0 {
		t.Error("nothing was run")
	}
}
