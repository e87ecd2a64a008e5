package workload

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/bench/network/history"
)

// task is what a worker does again and again: it asks for keys, works under the lock, releases it, and rests.
type task struct {
	keys     func(w *worker) []string
	calls    string                                             // one of these, by chance; where libraries are compared, the first
	ttl      func(w *worker) time.Duration                      // nil: 1 to 3 s
	patience func(w *worker) time.Duration                      // how long the call may take; nil: 2 to 6 s
	section  func(w *worker, ttl time.Duration) time.Duration   // how long it works; nil: mostly shortly, rarely beyond the validity
	hold     func(w *worker, c *history.Call, l held) (ok bool) // works otherwise, where ok
	options  func(w *worker, key string) redlock.Options        // of the call, where libraries are not compared; nil: none
	rest     span
}

// span is some time, and up to so much more.
type span struct{ least, more time.Duration }

func (w *worker) within(s span) time.Duration {
	return s.least + time.Duration(w.rng.Int64N(int64(s.more)+1))
}

// ms is a span of milliseconds.
func ms(least, more int) span {
	return span{time.Duration(least) * time.Millisecond, time.Duration(more) * time.Millisecond}
}

// during is a section whose length does not depend on the TTL.
func during(s span) func(*worker, time.Duration) time.Duration {
	return func(w *worker, _ time.Duration) time.Duration { return w.within(s) }
}

// always is the same for each turn.
func always(s span) func(*worker) time.Duration {
	return func(w *worker) time.Duration { return w.within(s) }
}

// of is one of n keys that all processes want.
func of(name string, n int) func(*worker) []string {
	return func(w *worker) []string { return []string{fmt.Sprint(name, w.rng.IntN(n))} }
}

// mine is a key of this process.
func mine(name string) func(*worker) []string {
	return func(w *worker) []string { return []string{fmt.Sprintf("%s-%d", name, w.Client)} }
}

// numbered are keys of this process, one after another, of which there are n.
func numbered(name string, n int) func(*worker) []string {
	return func(w *worker) []string {
		w.n++
		return []string{fmt.Sprintf("%s-%d-%d", name, w.Client, w.n%n)}
	}
}

// breakable is a key that operators break: one of all processes, or one of this process.
func breakable(w *worker) []string {
	if w.rng.IntN(2) == 0 {
		return []string{"broken"}
	}
	return mine("broken")(w)
}

// The tasks of each library.
var common = map[string]task{
	"hot1": hot, "hot2": hot,
	"try": {keys: func(w *worker) []string {
		if w.rng.IntN(4) == 0 {
			return hot.keys(w)
		}
		return of("try", 2)(w)
	}, calls: "TryAcquire", patience: always(ms(2000, 0)), section: during(ms(0, 30)), rest: ms(10, 50)},
	// Measures availability. A key in constant demand is left free for a while, so there are forty.
	"probe": {keys: numbered("probe", 40), calls: "Acquire", ttl: always(ms(1000, 0)), patience: always(ms(10_000, 0)), section: during(ms(0, 0)), rest: ms(15, 0)},
	// A key that no other worker ever wants, a third of the time with hardly any.
	"own": {keys: mine("own"), calls: "TryAcquire TryAcquire TryAcquireShared", ttl: func(w *worker) time.Duration { return w.bounded(2 * time.Second) },
		patience: func(w *worker) time.Duration {
			if w.rng.IntN(3) == 0 {
				return w.within(ms(1, 60))
			}
			return 2 * time.Second
		}, section: during(ms(0, 20)), rest: ms(10, 40)},
	"keep1": keep,
	// Works for as long as its lock is valid, while others wait for that: a claim that is too long is seen.
	"edge1": edge, "edge2": edge,
	// Hardly any time, for keys that are never used again: nothing may stay of them.
	"once": {keys: numbered("once", 1<<30), calls: "TryAcquire TryAcquire TryAcquireShared", ttl: func(w *worker) time.Duration { return w.OnceTTL },
		patience: always(ms(1, 120)), section: during(ms(0, 50)), rest: ms(50, 100)},
}

// The tasks of this library alone.
var more = map[string]task{
	"hot3": hot, "keep2": keep,
	"op1": op, "op2": op,
	"sets": {keys: func(w *worker) (keys []string) {
		for _, k := range w.rng.Perm(4)[:2+w.rng.IntN(2)] {
			keys = append(keys, fmt.Sprint("set", k))
		}
		return keys
	}, calls: "AcquireAll AcquireAll DoAll TryAcquireAll", options: some, rest: ms(0, 40)},
	"permit1": permit, "permit2": permit,
	"read1": read, "read2": read, "read3": read,
	"write": {keys: of("book", 2), calls: "Acquire", options: some, rest: ms(50, 250)},
	"job1":  job, "job2": job,
	"patient1": patient, "patient2": patient, "patient3": patient,
	// A set asks the nodes also where the process believes that it holds the key.
	"aside1": aside, "aside2": aside,
	"crowd0": crowd, "crowd1": crowd, "crowd2": crowd, "crowd3": crowd, "crowd4": crowd,
}

var (
	hot    = task{keys: of("hot", 3), calls: "Acquire Acquire Acquire Do Do", options: some, rest: ms(0, 40)}
	edge   = task{keys: of("edge", 1), calls: "Acquire", section: beyond, rest: ms(0, 40)}
	keep   = task{keys: of("keep", 2), calls: "Acquire", hold: keptOrExtended, rest: ms(0, 40)}
	op     = task{keys: of("op", 2), calls: "Submit", patience: always(ms(2000, 0)), rest: ms(10, 50)}
	permit = task{keys: func(*worker) []string { return redlock.Permits("permits", 3) }, calls: "AcquireAny AcquireAny AcquireAny TryAcquireAny", options: some, rest: ms(0, 60)}
	read   = task{keys: of("book", 2), calls: "AcquireShared AcquireShared AcquireShared DoShared TryAcquireShared", hold: sometimesKept, options: some, rest: ms(0, 60)}
	// Work that one of all callers does in a while, however short it is.
	job = task{keys: of("job", 2), calls: "TryDo", patience: always(ms(2000, 0)), options: term, rest: ms(10, 50)}
	// Several callers of one process with little time, for a key that no other process wants.
	crowd = task{keys: mine("crowd"), calls: "Acquire", patience: always(ms(30, 770)), section: during(ms(0, 20)), rest: ms(0, 80)}
	// Of a long TTL enough is left to pass the lock on.
	patient = task{keys: breakable, calls: "Acquire", section: half, options: some, rest: ms(0, 60)}
	aside   = task{keys: func(w *worker) []string { return append(breakable(w), "aside-"+w.name) }, calls: "TryAcquireAll", section: half, rest: ms(0, 60)}
)

// beyond is a section that the validity ends.
func beyond(w *worker, ttl time.Duration) time.Duration {
	if w.isCalm() {
		return w.section(ttl)
	}
	return 2 * ttl
}

func half(w *worker, ttl time.Duration) time.Duration {
	if !w.isCalm() && w.rng.IntN(2) == 0 {
		return ttl / 10
	}
	return w.section(ttl)
}

// some are options of one call of four: a name, less time, or few attempts.
func some(w *worker, _ string) (o redlock.Options) {
	switch w.rng.IntN(12) {
	case 0:
		o.Name = w.name
	case 1:
		o.Wait = w.within(ms(5, 1000))
	case 2:
		o.Attempts = 1 + w.rng.IntN(4)
	}
	return o
}

// term is the same for all callers of a key: short, or beyond the TTL that masters grant. Fenced masters allow for no more than that.
func term(w *worker, key string) redlock.Options {
	switch {
	case key == "job0":
		return redlock.Options{AtLeast: 700 * time.Millisecond}
	case w.Fenced:
		return redlock.Options{AtLeast: 3 * time.Second}
	}
	return redlock.Options{AtLeast: 4 * time.Second}
}

// turn is one turn of a task. It returns how long the worker rests.
func (w *worker) turn(t task) time.Duration {
	calls := strings.Fields(t.calls)
	api := calls[0]
	if w.client != nil && !w.Compared {
		api = calls[w.rng.IntN(len(calls))]
	}
	ttl, patience, section := (*worker).ttl, (*worker).patience, (*worker).section
	if t.ttl != nil {
		ttl = t.ttl
	}
	if t.patience != nil {
		patience = t.patience
	}
	if t.section != nil {
		section = t.section
	}
	c, ctx, cancel := w.begin(api, ttl(w), patience(w), t.keys(w)...)
	defer cancel()
	c.Shared = strings.HasSuffix(api, "Shared")
	if t.options != nil && w.client != nil && !w.Compared {
		c.Options = t.options(w, c.Keys[0])
		w.client = w.client.With(c.Options)
		w.locks = ours{w.client}
	}
	d := section(w, c.TTL)
	if do := w.doing(ctx, c); do != nil {
		w.do(c, d, do)
	} else if l, err := w.ask(ctx, c); w.granted(c, err, l) && (t.hold == nil || !t.hold(w, c, l)) {
		w.hold(c, l, d)
	}
	return w.within(t.rest)
}

// The calls of this library alone.
var (
	ofKey = map[string]func(*redlock.Client, context.Context, string, time.Duration) (redlock.Lock, error){
		"AcquireShared": (*redlock.Client).AcquireShared, "TryAcquireShared": (*redlock.Client).TryAcquireShared,
	}
	ofKeys = map[string]func(*redlock.Client, context.Context, time.Duration, ...string) (redlock.Lock, error){
		"AcquireAll": (*redlock.Client).AcquireAll, "TryAcquireAll": (*redlock.Client).TryAcquireAll,
		"AcquireAny": (*redlock.Client).AcquireAny, "TryAcquireAny": (*redlock.Client).TryAcquireAny,
	}
	doOfKey = map[string]func(*redlock.Client, context.Context, string, time.Duration, func(context.Context) error) error{
		"Do": (*redlock.Client).Do, "TryDo": (*redlock.Client).TryDo, "DoShared": (*redlock.Client).DoShared,
	}
)

// ask makes the call of c.
func (w *worker) ask(ctx context.Context, c *history.Call) (held, error) {
	if call := ofKey[c.API]; call != nil {
		return call(w.client, ctx, c.Keys[0], c.TTL)
	} else if call := ofKeys[c.API]; call != nil {
		return call(w.client, ctx, c.TTL, c.Keys...)
	} else if c.API == "Submit" {
		return submitted(w.client, ctx, c.Keys[0], c.TTL)
	} else if c.API == "Acquire" {
		return w.locks.Acquire(ctx, c.Keys[0], c.TTL)
	}
	return w.locks.TryAcquire(ctx, c.Keys[0], c.TTL)
}

// doing is the call of c, if that is a Do.
func (w *worker) doing(ctx context.Context, c *history.Call) func(func(context.Context) error) error {
	if call := doOfKey[c.API]; call != nil {
		return func(f func(context.Context) error) error { return call(w.client, ctx, c.Keys[0], c.TTL, f) }
	} else if c.API == "DoAll" {
		return func(f func(context.Context) error) error { return w.client.DoAll(ctx, c.TTL, c.Keys, f) }
	}
	return nil
}
