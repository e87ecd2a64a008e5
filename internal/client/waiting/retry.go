package waiting

import (
	"fmt"
	"time"

	"github.com/redlock-go/redlock/internal/client/engine"
)

// Retry is how an Acquire tries again. The root package documents it.
type Retry struct {
	Min, Max time.Duration // of a pause
	Attempts int           // 0: no limit
}

const (
	defaultMinPause = 50 * time.Millisecond
	defaultMaxPause = 250 * time.Millisecond

	// leastMaxPause bounds Max from below where Attempts is not limited: a caller with
	// shorter pauses keeps the nodes busy. It is also the least bound of a first pause.
	leastMaxPause = time.Millisecond
	// mostMaxPause keeps sums of an instant and a pause, and a doubled bound, from overflowing.
	mostMaxPause = engine.MaxTTL
)

// Check returns r with its defaults. Where one bound is given, the other follows it.
func (r Retry) Check() (Retry, error) {
	for _, f := range []struct {
		name  string
		value any
		wrong bool
	}{{"Retry.Min", r.Min, r.Min < 0}, {"Retry.Max", r.Max, r.Max < 0}, {"Retry.Attempts", r.Attempts, r.Attempts < 0}} {
		if f.wrong {
			return r, fmt.Errorf("%s is %v, want 0 (the default) or more", f.name, f.value)
		}
	}
	if r.Max == 0 {
		r.Max = max(defaultMaxPause, r.Min)
	}
	if r.Min == 0 {
		r.Min = max(1, min(defaultMinPause, r.Max/(defaultMaxPause/defaultMinPause)))
	}
	switch {
	case r.Min > r.Max:
		return r, fmt.Errorf("Retry.Min %v is above Retry.Max %v, lower Min or raise Max", r.Min, r.Max)
	case r.Max > mostMaxPause:
		return r, fmt.Errorf("Retry.Min is %v and Retry.Max %v, at most %v are allowed", r.Min, r.Max, mostMaxPause)
	case r.Max < leastMaxPause && r.Attempts == 0:
		return r, fmt.Errorf("Retry.Max is %v, which asks the nodes without a pause and without end: want %v or more, or a limit of Retry.Attempts", r.Max, leastMaxPause)
	}
	return r, nil
}

// pause is the pause after an attempt, from 1: jittered exponential backoff. random
// returns a number from 0 to below its argument.
func (r Retry) pause(attempt int, random func(time.Duration) time.Duration) time.Duration {
	bound := max(2*r.Min, leastMaxPause)
	for ; attempt > 1 && bound < r.Max; attempt-- {
		bound *= 2
	}
	return r.Min + random(min(bound, r.Max)-r.Min+1)
}
