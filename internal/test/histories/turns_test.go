package histories

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/rules/contention"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/virtual"
)

// workers is processes on machines of their own, with one caller each in a loop, and what they have had.
type workers struct {
	*virtual.World
	trip time.Duration // there and back

	mu       sync.Mutex
	grants   []int           // of each process
	order    []int           // whose they were
	waits    []time.Duration // of callers
	freed    time.Time       // when the lock was released last
	handOver []time.Duration // from then to the next grant, of another process
}

// use is one form of a lock: work runs under it.
type use func(ctx context.Context, c *redlock.Client, key string, work func())

var uses = map[string]use{
	"Do": func(ctx context.Context, c *redlock.Client, key string, work func()) {
		_ = c.Do(ctx, key, longTTL, func(context.Context) error { work(); return nil })
	},
	"Release": func(ctx context.Context, c *redlock.Client, key string, work func()) {
		if l, err := c.Acquire(ctx, key, longTTL); err == nil {
			work()
			_ = l.Release(context.WithoutCancel(ctx))
		}
	},
	"ReleaseAsync": func(ctx context.Context, c *redlock.Client, key string, work func()) {
		if l, err := c.Acquire(ctx, key, longTTL); err == nil {
			work()
			l.ReleaseAsync()
		}
	},
	"KeepAlive": func(ctx context.Context, c *redlock.Client, key string, work func()) {
		if l, err := c.Acquire(ctx, key, longTTL); err == nil {
			_, stop := l.KeepAlive(ctx)
			work()
			stop()
			l.ReleaseAsync()
		}
	},
	"DoAll": func(ctx context.Context, c *redlock.Client, key string, work func()) {
		_ = c.DoAll(ctx, longTTL, []string{key, "also " + key}, func(context.Context) error { work(); return nil })
	},
	"AcquireAny": func(ctx context.Context, c *redlock.Client, key string, work func()) {
		if l, err := c.AcquireAny(ctx, longTTL, key); err == nil {
			work()
			l.ReleaseAsync()
		}
	},
}

// atWork has n processes at work for d, each with a job of hold again and again.
func atWork(w *virtual.World, n int, trip, hold, d time.Duration, f use) *workers {
	all := &workers{World: w, trip: trip, grants: make([]int, n)}
	ctx, cancel := context.WithTimeout(w.T.Context(), d)
	defer cancel()
	var done sync.WaitGroup
	for i := range n {
		c := away(w, trip)
		done.Go(func() {
			for ctx.Err() == nil {
				began := time.Now()
				f(ctx, c, "k", func() {
					all.granted(i, time.Since(began))
					time.Sleep(hold)
					all.released()
				})
			}
		})
	}
	done.Wait()
	return all
}

// away is a client whose nodes are so far away, there and back.
func away(w *virtual.World, trip time.Duration) *redlock.Client {
	m := w.Machine()
	for _, node := range w.Nodes {
		m.Link(node).Delay(trip/2, trip-trip/2, trip/20)
	}
	c, _ := w.ClientOn(m)
	return c
}

func (w *workers) granted(i int, waited time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	took := time.Since(w.freed)
	if n := len(w.order); n > 0 && w.order[n-1] != i && took < contention.GapLength { // a gap is none
		w.handOver = append(w.handOver, took)
	}
	w.grants[i]++
	w.order = append(w.order, i)
	w.waits = append(w.waits, waited)
}

func (w *workers) released() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.freed = time.Now()
}

// share is the least and the most of a process's share of any so many grants in a row, of its fair one.
func (w *workers) share(of int) (least, most float64) {
	n := len(w.grants)
	least, most = 1, 1
	for at := 0; at+of <= len(w.order); at += max(1, of/10) {
		in := make([]int, n)
		for _, i := range w.order[at : at+of] {
			in[i]++
		}
		for _, k := range in {
			s := float64(k*n) / float64(of)
			least, most = min(least, s), max(most, s)
		}
	}
	return least, most
}

// p50 is the median of the hand-overs, and the least that it may be of many more: lower by two standard deviations of its
// rank. A hand-over that meets the renewal of a place takes half a round trip longer, and of few these may be the more.
func (w *workers) p50() (median, atLeast time.Duration) {
	slices.Sort(w.handOver)
	n := len(w.handOver)
	if n == 0 {
		return 0, 0
	}
	return w.handOver[n/2], w.handOver[max(0, int(float64(n)/2-math.Sqrt(float64(n))))]
}

func (w *workers) String() string {
	slices.Sort(w.waits)
	least, most := w.share(min(100, len(w.order)))
	median, _ := w.p50()
	return fmt.Sprintf("grants %v, share %.2f to %.2f, hand-over p50 %v (%.1f round trips), longest wait %v",
		w.grants, least, most, median, float64(median)/float64(w.trip), w.waits[len(w.waits)-1])
}

// TestTurns: each of some processes in a loop has its share of the grants, for every form of a lock, length of
// work and distance of the nodes; and a hand-over costs two round trips.
func TestTurns(t *testing.T) {
	const ms = time.Millisecond
	type cell struct {
		of         int // processes
		hold, trip time.Duration
	}
	cells := []cell{{2, 0, 5 * ms}, {2, 20 * ms, 5 * ms}, {2, 300 * ms, 5 * ms}, {2, 5 * time.Second, 5 * ms}, {4, ms, 20 * ms}, {4, 10 * time.Second, 20 * ms}, {8, time.Second, 20 * ms}}
	if testkit.Race { // many seconds of each
		cells = cells[:4]
	}
	if testkit.Long() {
		cells = nil
		for _, of := range []int{2, 4, 8} {
			for _, hold := range []time.Duration{0, ms, 5 * ms, 20 * ms, 100 * ms, 300 * ms, time.Second, 5 * time.Second, 10 * time.Second} {
				for _, trip := range []time.Duration{ms / 10, ms, 5 * ms, 20 * ms} {
					cells = append(cells, cell{of, hold, trip})
				}
			}
		}
	}
	for name, f := range uses {
		for _, c := range cells {
			t.Run(fmt.Sprint(name, " of ", c.of, " processes, ", c.hold, " of work, ", c.trip, " away"), func(t *testing.T) {
				t.Parallel()
				virtual.Run(t, 5, func(w *virtual.World) {
					turn := c.hold + 4*c.trip
					all := atWork(w, c.of, c.trip, c.hold, max(time.Second, time.Duration(10*c.of)*turn), f)
					t.Log(all)
					all.settled(turn)
					turns := c.of + 1
					if name == "DoAll" { // its keys' queues may have different orders
						turns *= 2
					}
					require.LessOrEqual(t, all.waits[len(all.waits)-1], time.Duration(turns)*turn+time.Second)
					few := min(100, len(all.order))
					least, most := all.share(few)
					slack := float64(c.of) / float64(few) // of few one more or less counts
					require.GreaterOrEqual(t, least, 0.8-slack, "of %d grants", few)
					require.LessOrEqual(t, most, 1.25+slack, "of %d grants", few)
					if name != "DoAll" {
						_, handOver := all.p50()
						require.LessOrEqual(t, handOver, c.trip*22/10+c.trip/10)
					}
				})
			})
		}
	}
}

// settled leaves out what was before the processes have met.
func (w *workers) settled(turn time.Duration) {
	w.order = w.order[min(len(w.order)/2, max(2*len(w.grants), int(20*time.Millisecond/turn))):]
}

// outsiders are scenarios of those who poll beside holders who never leave the lock free.
var outsiders = []scenario{
	{"a poller beside one caller in a loop, 2 ms", 3, func(s *stage) { s.besideHolders(2*time.Millisecond, 1, uses["Do"]) }},
	{"a poller beside one caller in a loop, 1 s", 3, func(s *stage) { s.besideHolders(time.Second, 1, uses["Release"]) }},
	{"a poller beside readers, 20 ms", 3, func(s *stage) { s.besideHolders(20*time.Millisecond, 4, share) }},
	{"a poller beside readers, 300 ms", 3, func(s *stage) { s.besideHolders(300*time.Millisecond, 4, share) }},
	{"a poller beside readers, 2 s", 3, func(s *stage) { s.besideHolders(2*time.Second, 4, share) }},
}

func share(ctx context.Context, c *redlock.Client, key string, work func()) {
	_ = c.DoShared(ctx, key, longTTL, func(context.Context) error { work(); return nil })
}

// besideHolders requires that a client of another library has the lock in time beside two processes, of one caller one, in which
// callers use it by f again and again.
func (s *stage) besideHolders(hold time.Duration, callers int, f use) {
	s.T.Helper()
	ctx, cancel := context.WithCancel(s.ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	for range min(2, callers) {
		c := s.Client()
		for i := range callers {
			all.Go(func() {
				time.Sleep(hold * time.Duration(i) / time.Duration(callers))
				for ctx.Err() == nil {
					f(ctx, c, "k", func() { time.Sleep(hold) })
				}
			})
		}
	}
	time.Sleep(hold / 3)
	for range 2 {
		waited := s.foreigner()
		require.LessOrEqual(s.T, waited, max(3*time.Second, 3*hold)+250*time.Millisecond, "beside holders of %v", hold) // and a pause of its own
	}
}
