package group

import (
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/renewal"
)

// life is what a lock asks of its lease from its acquisition to its release.
func life(l *lease) bool {
	n := l.begin(state{key: "lock:orders", token: tokenOf(1), until: time.Second}, 0)
	_, held := l.get(n)
	return held && l.end(n)
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
	n := l.begin(state{key: "lock:orders", token: tokenOf(1), until: time.Second}, 0)
	for b.Loop() {
		if _, held := l.get(n); !held {
			b.Fatal("not held")
		}
	}
}

func BenchmarkLeaseExtend(b *testing.B) {
	b.ReportAllocs()
	var l lease
	n := l.begin(state{key: "lock:orders", token: tokenOf(1), until: time.Second}, 0)
	for b.Loop() {
		l.extended(n, l.extending(n, 0, time.Second), renewal.Won)
	}
}

func TestLeaseAllocatesNothing(t *testing.T) {
	var l lease
	got := testing.AllocsPerRun(1000, func() {
		n := l.begin(state{key: "lock:orders", token: tokenOf(1), until: time.Second}, 0)
		l.extended(n, l.extending(n, 0, time.Second), renewal.Won)
		_, _ = l.get(n)
		_, _, _ = l.releasing(n)
		_ = l.reportLoss(n)
		_ = l.end(n)
	})
	if got != 0 {
		t.Errorf("%v allocations, want 0", got)
	}
}
