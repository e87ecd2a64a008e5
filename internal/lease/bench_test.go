package lease_test

import (
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/lease"
)

// life is what a lock asks of its lease from its acquisition to its release.
func life(l *lease.Lease) bool {
	n := l.Begin("lock:orders", tokenOf(1), time.Second, 0)
	_, _, _, _, held := l.Get(n)
	return held && l.End(n)
}

func BenchmarkLife(b *testing.B) {
	b.ReportAllocs()
	var l lease.Lease
	for b.Loop() {
		if !life(&l) {
			b.Fatal("not held")
		}
	}
}

func BenchmarkGet(b *testing.B) {
	b.ReportAllocs()
	var l lease.Lease
	n := l.Begin("lock:orders", tokenOf(1), time.Second, 0)
	for b.Loop() {
		if _, _, _, _, held := l.Get(n); !held {
			b.Fatal("not held")
		}
	}
}

func BenchmarkExtend(b *testing.B) {
	b.ReportAllocs()
	var l lease.Lease
	n := l.Begin("lock:orders", tokenOf(1), time.Second, 0)
	for b.Loop() {
		l.Extended(n, l.Extending(n, time.Second), lease.Won)
	}
}

func TestAllocatesNothing(t *testing.T) {
	var l lease.Lease
	got := testing.AllocsPerRun(1000, func() {
		n := l.Begin("lock:orders", tokenOf(1), time.Second, 0)
		l.Extended(n, l.Extending(n, time.Second), lease.Won)
		_, _, _, _, _ = l.Get(n)
		_ = l.Releasing(n)
		_ = l.Report(n)
		_ = l.End(n)
	})
	if got != 0 {
		t.Errorf("%v allocations, want 0", got)
	}
}
