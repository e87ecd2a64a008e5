package histories

import (
	"math/rand/v2"
	"time"
)

// random is the randomness of one goroutine.
type random struct{ *rand.Rand }

func newRandom(seed, stream uint64) random { return random{rand.New(rand.NewPCG(seed, stream))} }

// N is a random time below d.
func (r random) N(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return time.Duration(r.Int64N(int64(d)))
}
