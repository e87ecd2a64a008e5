package holding

import (
	"testing"

	"github.com/redlock-go/redlock/internal/rules/renewal"
)

func TestLeaseAllocatesNothing(t *testing.T) {
	k, s, extends := newKeeper(), lasting("lock:orders", 1, second), extension(second)
	got := testing.AllocsPerRun(1000, func() {
		h := k.Begin(&s, 0, 0)
		k.NoteExtend(h, extends, renewal.Won)
		_, _ = h.State()
		_, _ = k.Releasing(h)
		_ = h.ReportLoss()
		_ = h.End()
	})
	if got > 0.1 { // the pool of leases may be emptied
		t.Errorf("%v allocations, want 0", got)
	}
}
