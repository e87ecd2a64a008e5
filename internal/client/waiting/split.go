package waiting

import (
	"math/rand/v2"
	"time"

	"github.com/redlock-go/redlock/internal/rules/contention"
	"github.com/redlock-go/redlock/quorum"
)

// MaxSplits is how many rounds of split votes a call decides before it reports the lock as taken.
const MaxSplits = 4

// AfterSplit is the pause before the next attempt on a key with split votes: after so many such rounds, and a trip to
// the deciding node. A node grants a key once, so the callers of a split have different nodes. The lock's own order
// of the nodes is then an order of the callers: the first tries again within half a trip, and each other one a trip
// after its predecessor.
func (l *Lines) AfterSplit(key string, granted quorum.Set, round int, trip time.Duration) time.Duration {
	rank := contention.Rank(key, l.names, granted)
	trip *= time.Duration(round + 1)
	return trip*time.Duration(rank) + rand.N(max(1, trip/2))
}

// leastStay is the least of AfterContest.
const leastStay = 50 * time.Millisecond

// AfterContest is for how long after its grant a lock stays that was won against others after so many rounds of split
// votes: until each of them has looked, also one with a round more. Their trips are like this one's.
func (l *Lines) AfterContest(rounds int, trip time.Duration) time.Duration {
	return max(leastStay, trip*time.Duration((rounds+2)*len(l.names)+2))
}
