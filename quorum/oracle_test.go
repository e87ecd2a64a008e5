package quorum_test

import (
	"fmt"

	"github.com/redlock-go/redlock/quorum"
)

var outcomes = [...]quorum.Outcome{quorum.Granted, quorum.Denied, quorum.Failed}

// vote is one call of Record.
type vote struct {
	node    int
	outcome quorum.Outcome
}

// oracle is a tally as one would write it with all the time in the world: it
// keeps every vote it was ever given and works everything out anew, from the
// words of the rules, each time it is asked. It shares no formula with Tally.
type oracle struct {
	n     int
	votes []vote
}

func (o *oracle) record(node int, outcome quorum.Outcome) {
	o.votes = append(o.votes, vote{node, outcome})
}

// outcome is the first proper vote of a node, 0 when it has none.
func (o *oracle) outcome(node int) quorum.Outcome {
	if node < 0 || node >= o.n {
		return 0
	}
	for _, v := range o.votes {
		proper := v.outcome == quorum.Granted || v.outcome == quorum.Denied || v.outcome == quorum.Failed
		if v.node == node && proper {
			return v.outcome
		}
	}
	return 0
}

// count is the number of nodes with an outcome; 0 counts those without.
func (o *oracle) count(outcome quorum.Outcome) int {
	sum := 0
	for node := range o.n {
		if o.outcome(node) == outcome {
			sum++
		}
	}
	return sum
}

// verdict asks whether more than half have granted, and whether more than half
// ever could. That no later vote changes a verdict is not built in here: it
// has to follow from the rules.
func (o *oracle) verdict() quorum.Verdict {
	granted, waiting := o.count(quorum.Granted), o.count(0)
	switch {
	case 2*granted > o.n:
		return quorum.Won
	case 2*(granted+waiting) <= o.n:
		return quorum.Lost
	}
	return quorum.Pending
}

// differs compares everything a tally can be asked with the oracle, and
// returns "" or the first difference.
func (o *oracle) differs(t *quorum.Tally) string {
	for _, c := range []struct {
		what      string
		got, want int
	}{
		{"verdict", int(t.Verdict()), int(o.verdict())},
		{"granted", t.Count(quorum.Granted), o.count(quorum.Granted)},
		{"denied", t.Count(quorum.Denied), o.count(quorum.Denied)},
		{"failed", t.Count(quorum.Failed), o.count(quorum.Failed)},
		{"not voted", t.Count(0), o.count(0)},
		{"no outcome", t.Count(4), 0},
	} {
		if c.got != c.want {
			return fmt.Sprintf("%s: tally %d, oracle %d (n=%d, votes %v)", c.what, c.got, c.want, o.n, o.votes)
		}
	}
	for node := -1; node <= o.n; node++ {
		if got, want := t.Outcome(node), o.outcome(node); got != want {
			return fmt.Sprintf("outcome of node %d: tally %v, oracle %v (n=%d, votes %v)", node, got, want, o.n, o.votes)
		}
	}
	return ""
}
