package histories

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
	"github.com/redlock-go/redlock/internal/test/testkit/virtual"
)

// zones is processes in three zones, each with masters of its own, and how they try a lock.
type zones struct {
	processes, nodes int
	near, far        time.Duration // round trips: inside a zone, and to the others
	late             time.Duration // how much later answers from inside a zone are
	change           func(w *virtual.World, c *redlock.Config)
	keys             int           // of a lock; more than one are tried by TryAcquireAll
	job              time.Duration // of TryDo, in place of TryAcquireAll and a hold for some round trips
	apart            time.Duration // the clocks of the processes; 0: a part of far
	atLeast          time.Duration // of Options
	also             bool          // each process has a caller of Acquire too, who does nothing
}

// fired is the results of the fires: in how many no process had the lock, in how many two had it at
// once, and how long the first took to have it, in order.
type fired struct {
	none, two int
	again     int // how often a second one had it after the first
	until     []time.Duration
}

// fire has all processes try a lock at once, so many times, each time another.
func (z zones) fire(w *virtual.World, random *rand.Rand, fires int) (f fired) {
	var clients []*redlock.Client
	for p := range z.processes {
		m := w.Machine()
		for i, node := range w.Nodes {
			there, back := z.far/2, z.far/2
			if i%3 == p%3 {
				there, back = z.near/2, z.near/2+z.late
			}
			m.Link(node).Delay(there, back, (there+back)/20)
		}
		c, _ := w.ClientOn(m, func(c *redlock.Config) {
			if z.change != nil {
				z.change(w, c)
			}
		})
		clients = append(clients, c)
	}
	for _, c := range clients {
		if err := cluster.IsReady(c); err != nil {
			require.NoError(w.T, clients[0].InitFencing(w.T.Context()), "only the nodes of fenced clients are not ready at once: %v", err)
		}
		require.NoError(w.T, c.Ready(w.T.Context()))
	}
	for n := range fires {
		var holders, ran, most atomic.Int32
		var first atomic.Int64
		var all sync.WaitGroup
		keys := []string{fmt.Sprint("job:", n)}
		for k := 1; k < z.keys; k++ {
			keys = append(keys, fmt.Sprint("job:", n, ":", k))
		}
		began := time.Now()
		for _, c := range clients {
			late := time.Duration(random.Int64N(int64(cmp.Or(z.apart, z.far/4))))
			work := func(context.Context) error {
				first.CompareAndSwap(0, int64(time.Since(began)))
				ran.Add(1)
				most.Store(max(most.Load(), holders.Add(1)))
				time.Sleep(cmp.Or(z.job, 20*z.far))
				holders.Add(-1)
				return nil
			}
			if z.also {
				all.Go(func() {
					time.Sleep(late + z.far/2)
					l, err := c.Acquire(w.T.Context(), keys[0], longTTL)
					require.NoError(w.T, err)
					require.NoError(w.T, l.Release(w.T.Context()))
				})
			}
			all.Go(func() {
				time.Sleep(late)
				var err error
				if z.job > 0 {
					err = c.With(redlock.Options{AtLeast: z.atLeast}).TryDo(w.T.Context(), keys[0], longTTL, work)
				} else {
					var l redlock.Lock
					if l, err = c.TryAcquireAll(w.T.Context(), longTTL, keys...); err == nil {
						_ = work(w.T.Context())
						err = l.Release(context.Background())
					}
				}
				if err != nil && err != redlock.ErrTaken {
					w.T.Errorf("%v", err)
				}
			})
		}
		all.Wait()
		if ran.Load() == 0 {
			f.none++
		}
		if ran.Load() > 1 {
			f.again++
		}
		if most.Load() > 1 {
			f.two++
		}
		if at := first.Load(); at > 0 {
			f.until = append(f.until, time.Duration(at))
		}
		time.Sleep(max(5*z.far, 2*z.job, z.atLeast)) // late releases
	}
	slices.Sort(f.until)
	return f
}

// TestSplits: of processes that try a free lock at once one gets it, and of those that call TryDo one runs its job, also
// where this is over before the others have tried again. The votes of three zones split whenever each process reaches its
// own master first. A short job, fired by processes with clocks that are two seconds apart, is run by one of them where its
// lock stays for longer.
func TestSplits(t *testing.T) {
	fires := 60
	if testkit.Long() {
		fires = 1000
	}
	fenced := func(_ *virtual.World, c *redlock.Config) { c.Fenced, c.MaxTTL = true, time.Minute }
	joint := func(w *virtual.World, c *redlock.Config) { c.Nodes, c.NextNodes = w.Nodes[:3], w.Nodes[3:] }
	patient := func(_ *virtual.World, c *redlock.Config) { c.NodeTimeout = time.Second }
	const ms = time.Millisecond
	for name, z := range map[string]zones{
		"3 processes":                   {processes: 3, nodes: 3, near: ms / 5, far: 2 * ms},
		"16 processes, far":             {processes: 16, nodes: 3, near: ms / 5, far: 10 * ms},
		"all nodes as far":              {processes: 3, nodes: 3, near: ms / 2, far: ms / 2},
		"a joint quorum":                {processes: 8, nodes: 6, near: ms / 5, far: 2 * ms, change: joint},
		"fenced":                        {processes: 8, nodes: 3, near: ms / 5, far: 2 * ms, change: fenced},
		"grants come last":              {processes: 3, nodes: 3, near: ms / 5, far: 2 * ms, late: 4 * ms},
		"a short job beside Acquire":    {processes: 3, nodes: 3, near: ms / 5, far: 10 * ms, job: 2 * ms, also: true},
		"a short job, fenced":           {processes: 3, nodes: 3, near: ms / 5, far: 20 * ms, job: 20 * ms, change: fenced},
		"a short job, a joint quorum":   {processes: 8, nodes: 6, near: ms / 5, far: 20 * ms, job: 20 * ms, change: joint},
		"a short job, 50 ms apart":      {processes: 3, nodes: 3, near: ms / 5, far: 50 * ms, job: 20 * ms, change: patient},
		"a short job, 16 near":          {processes: 16, nodes: 5, near: ms / 2, far: ms / 2, job: 10 * ms},
		"a short job, two, 20 ms apart": {processes: 2, nodes: 3, near: ms / 5, far: 20 * ms, job: 20 * ms},
		"a set of keys, 8 of 5":         {processes: 8, nodes: 5, near: ms / 5, far: 10 * ms, keys: 3},
		"a term":                        {processes: 16, nodes: 5, near: ms / 5, far: 10 * ms, job: 20 * ms, apart: 2 * time.Second, atLeast: 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			virtual.Run(t, z.nodes, func(w *virtual.World) {
				f := z.fire(w, rand.New(rand.NewPCG(1, 2)), fires)
				if !z.also { // else Acquire may have had it alone
					require.Zero(w.T, f.none, "fires without a holder")
				}
				require.Zero(w.T, f.two, "fires with two at once")
				if z.job > 0 {
					require.Zero(w.T, f.again, "fires with a second one after the first")
				}
				require.NotEmpty(w.T, f.until)
				bound := z.apart + 10*z.far
				if z.also { // a lock that an Acquire has had stays first
					bound += 20 * z.far
				}
				require.LessOrEqual(w.T, f.until[(len(f.until)-1)*99/100], bound)
			})
		})
	}
}
