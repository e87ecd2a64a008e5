//go:build !race

package clock_test

import (
	"testing"

	"github.com/redlock-go/redlock/internal/clock"
)

func TestAllocatesNothing(t *testing.T) {
	fake := clock.NewFake()
	for name, read := range map[string]func(){
		"System": func() { clock.System().Now() },
		"Fake":   func() { fake.Advance(1); fake.Now() },
	} {
		if got := testing.AllocsPerRun(100, read); got != 0 {
			t.Errorf("%s: %v allocations, want 0", name, got)
		}
	}
}
