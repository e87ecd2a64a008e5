package waiting

import (
	"math/rand/v2"
	"time"

	"github.com/redlock-go/redlock/internal/rules/contention"
	"github.com/redlock-go/redlock/quorum"
)

// MaxSplits is how many rounds of split votes a call decides before it reports the lock as taken.
const MaxSplits = 4

// AfterSplit is the pause before the next attempt on a key whose votes were split: after so many
// such rounds before, and a trip to the deciding node. A node grants a key once, so callers that
// split the votes have different nodes, and the lock's own order of these is an order of the callers:
// the first tries again within half a trip, and each other one a trip after the one before it.
func (l *Lines) AfterSplit(key string, granted quorum.Set, round int, trip time.Duration) time.Duration {
	place := contention.Place(key, l.names, granted)
	trip *= time.Duration(round + 1)
	return trip*time.Duration(place) + rand.N(max(1, trip/2))
}
