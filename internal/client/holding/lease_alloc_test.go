package holding

import (
	"testing"

	"github.com/redlock-go/redlock/internal/rules/renewal"
)

func TestLeaseAllocatesNothing(t *testing.T) {
	var l lease
	got := testing.AllocsPerRun(1000, func() {
		n := l.begin(&State{Key: "lock:orders", Token: tokenOf(1), Until: second}, 0)
		l.of(n).noteExtend(renewal.Validity{Until: second}, renewal.Won)
		_, _ = l.of(n).State()
		_, _, _, _ = l.of(n).releasing()
		_ = l.of(n).ReportLoss()
		_ = l.of(n).end()
	})
	if got != 0 {
		t.Errorf("%v allocations, want 0", got)
	}
}
