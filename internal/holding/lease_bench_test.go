package holding

import (
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/renewal"
)

// life is what a lock asks of its lease from its acquisition to its release.
func life(l *lease) bool {
	n := l.begin(State{Key: "lock:orders", Token: tokenOf(1), Until: time.Second}, 0)
	_, held := l.of(n).State()
	return held && l.of(n).end()
}

func BenchmarkLeaseLife(b *testing.B) {
	b.ReportAllocs()
	var l lease
	for b.Loop() {
		if !life(&l) {
			b.Fatal("not held")
		}
	}
}

func BenchmarkLeaseGet(b *testing.B) {
	b.ReportAllocs()
	var l lease
	n := l.begin(State{Key: "lock:orders", Token: tokenOf(1), Until: time.Second}, 0)
	for b.Loop() {
		if _, held := l.of(n).State(); !held {
			b.Fatal("not held")
		}
	}
}

func BenchmarkLeaseExtend(b *testing.B) {
	b.ReportAllocs()
	var l lease
	n := l.begin(State{Key: "lock:orders", Token: tokenOf(1), Until: time.Second}, 0)
	for b.Loop() {
		l.of(n).extended(0, time.Second, renewal.Won)
	}
}

func TestLeaseAllocatesNothing(t *testing.T) {
	var l lease
	got := testing.AllocsPerRun(1000, func() {
		n := l.begin(State{Key: "lock:orders", Token: tokenOf(1), Until: time.Second}, 0)
		l.of(n).extended(0, time.Second, renewal.Won)
		_, _ = l.of(n).State()
		_, _, _, _ = l.of(n).releasing()
		_ = l.of(n).ReportLoss()
		_ = l.of(n).end()
	})
	if got != 0 {
		t.Errorf("%v allocations, want 0", got)
	}
}
