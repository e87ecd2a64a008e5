package histories

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/test/testkit"
)

// seeds is the number of histories: a few in the short form, 10,000 with REDLOCK_LONG=1 (-timeout
// 1h leaves time for them), and REDLOCK_SEEDS where it is set.
func seeds() uint64 {
	if n, err := strconv.ParseUint(os.Getenv("REDLOCK_SEEDS"), 10, 64); err == nil {
		return n
	}
	switch {
	case testkit.Long():
		return 10_000
	case testkit.Race, testing.Short():
		return 2
	}
	return 20
}

// from is the first of n histories, and their number: REDLOCK_SEED names one, or the first of
// REDLOCK_SEEDS.
func from(n uint64) (first, count uint64) {
	seed, err := strconv.ParseUint(os.Getenv("REDLOCK_SEED"), 10, 64)
	switch {
	case err != nil:
		return 0, n
	case os.Getenv("REDLOCK_SEEDS") == "":
		return seed, 1
	}
	return seed, seeds()
}

// live runs histories of n seeds up to the first that fails, and calls each with them.
func live(t *testing.T, n uint64, planned func(seed uint64) *plan, each func(*history)) (ran uint64) {
	first, n := from(n)
	for seed := first; seed < first+n; seed++ {
		h := run(t, planned(seed))
		if h.failed() {
			t.Fatal(h.report())
		}
		each(h)
	}
	return n
}

// TestHistories runs histories of many seeds.
func TestHistories(t *testing.T) {
	t.Parallel()
	live(t, seeds(), newPlan, func(h *history) {
		if os.Getenv("REDLOCK_SEED") != "" {
			t.Logf("%v; %d grants", h.plan, h.ledger.grants)
		}
	})
}

// The bounds of waiting for a free lock. A process asks for a lock every 1.05 s at least,
// also while its callers' hooks and contexts block, behind a set that keeps its turn for 1.2 s.
// Where a lock is freed under a holder who believes in it, by an operator or with its token, the holder's
// process learns of it in these 1.05 s, and its gap may follow (longestGap).
const (
	freeFor  = 2300 * time.Millisecond
	aloneFor = 1100 * time.Millisecond // where no set wants it
)
