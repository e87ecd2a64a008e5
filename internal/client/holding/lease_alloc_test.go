package holding

import (
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/rules/renewal"
)

func TestLeaseAllocatesNothing(t *testing.T) {
	var l lease
	got := testing.AllocsPerRun(1000, func() {
		n := l.begin(&State{Key: "lock:orders", Token: tokenOf(1), Until: time.Second}, 0)
		l.of(n).extended(renewal.Validity{Until: time.Second}, renewal.Won)
		_, _ = l.of(n).State()
		_, _, _, _ = l.of(n).releasing()
		_ = l.of(n).ReportLoss()
		_ = l.of(n).end()
	})
	if got != 0 {
		t.Errorf("%v allocations, want 0", got)
	}
}
