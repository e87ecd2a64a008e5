package harness

import "github.com/redlock-go/redlock/bench/result"

// verdict is what an interval says of a loss.
type verdict int

const (
	unclear verdict = iota // more rounds would decide
	level                  // the loss is less than what is to be noticed
	worse                  // there is one
)

// slight is the part of what is to be noticed that counts as no loss.
const slight = 0.2

// verdictOf is what an interval says of a loss of some per cent.
func verdictOf(i result.Interval, loss float64, more bool) verdict {
	least, most := i.Low, i.High
	if more {
		least, most = 1/i.High, 1/i.Low
	}
	switch {
	case least > 1+slight*loss/100:
		return worse
	case most < 1+loss/100:
		return level
	}
	return unclear
}
