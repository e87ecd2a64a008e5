package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// TestTakenIsSeen: no call says that a lock is taken where none has it, beside silent nodes and what attempts have left
// behind, and however short a wait is: not a second after the last holder. Two processes contend for some keys. Then all locks are released, one node of three
// goes, another hangs, and the third has the remains of attempts at some keys. Each end of a call is one of those listed.
func TestTakenIsSeen(t *testing.T) {
	const ms = time.Millisecond
	histories := 20
	if testkit.Long() {
		histories = 600 // 25 calls each
	}
	ends := map[string]int{}
	for seed := range histories {
		cluster.Run(t, strconv.Itoa(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(uint64(seed), 59))
			timeout := []time.Duration{50 * ms, 200 * ms, time.Second}[rng.IntN(3)]
			r := cluster.New(t, 3, cluster.NodeTimeout(timeout))
			r.Servers.Delay(ms)
			clients := []*redlock.Client{r.Client, cluster.ConnectOn(t, r.Machine, fakeredis.Addrs(r.Servers), cluster.NodeTimeout(timeout))}
			keys := []string{"a", "b", "c", "d"}
			var mu sync.Mutex
			var calls sync.WaitGroup
			call := func(c *redlock.Client, kind int, key string, wait time.Duration, mayBeTaken bool) {
				limited := c.With(redlock.Options{Wait: wait})
				var err error
				work := func(context.Context) error { time.Sleep(2 * ms); return nil }
				switch kind {
				case 0:
					err = limited.Do(t.Context(), key, time.Second, work)
				case 1:
					err = limited.TryDo(t.Context(), key, time.Second, work)
				case 2:
					err = limited.DoAll(t.Context(), time.Second, []string{key, "a"}, work)
				case 3:
					err = limited.DoAny(t.Context(), time.Second, []string{key, "b", "c"}, work)
				}
				end := "nil"
				for name, is := range map[string]error{"taken": redlock.ErrTaken, "no quorum": redlock.ErrNoQuorum, "expired": redlock.ErrExpired, "no answer": redlock.ErrNoAnswer} {
					if errors.Is(err, is) {
						end = name
					}
				}
				mu.Lock()
				defer mu.Unlock()
				ends[fmt.Sprint(end, mayBeTaken)]++
				if err != nil && end == "nil" || end == "taken" && !mayBeTaken {
					t.Errorf("kind %d, wait %v, timeout %v: %v", kind, wait, timeout, err)
				}
			}
			begin := func(mayBeTaken bool) {
				c, kind, key, wait := clients[rng.IntN(2)], rng.IntN(4), keys[rng.IntN(4)], time.Duration(1+rng.IntN(80))*ms
				calls.Go(func() { call(c, kind, key, wait, mayBeTaken) })
			}
			for range 20 { // some denied, some granted
				begin(true)
				time.Sleep(time.Duration(rng.IntN(4)) * ms)
			}
			calls.Wait()
			old := time.Now().Add(time.Second)                         // from then on what nodes have denied counts no more
			time.Sleep(10*ms + time.Duration(rng.IntN(2))*time.Second) // the releases are done
			r.Servers[2].Down()
			for _, key := range keys[:rng.IntN(4)] {
				r.Servers[0].Set(key, foreign, ttl)
			}
			if rng.IntN(2) == 0 {
				time.Sleep(2 * time.Second) // it is known to be down
			}
			r.Servers[1].Hang()
			for range 25 {
				begin(time.Now().Before(old))
				time.Sleep(time.Duration(rng.IntN(100)) * ms)
			}
			calls.Wait()
			require.NoError(t, r.Servers.Heal())
		})
	}
	require.Greater(t, ends["takentrue"], histories/4, ends)
	require.Greater(t, ends["no quorumfalse"]+ends["no answerfalse"], 15*histories, ends)
	t.Log(ends)
}

// TestWhoHasGoneIsNoHolder: a key had waiters, of this process and of another, and is free. Then the nodes fall silent. A
// wait that ends before they have answered is no answer, though a holder had denied the lock less than a second before.
func TestWhoHasGoneIsNoHolder(t *testing.T) {
	const ms = time.Millisecond
	for name, holder := range map[string]func(t *testing.T, r *cluster.Cluster) *redlock.Client{
		"this process": func(_ *testing.T, r *cluster.Cluster) *redlock.Client { return r.Client },
		"another": func(t *testing.T, r *cluster.Cluster) *redlock.Client {
			return cluster.ConnectOn(t, r.Machine, fakeredis.Addrs(r.Servers))
		},
	} {
		cluster.Run(t, name, func(t *testing.T) {
			r := cluster.New(t, 3, cluster.NodeTimeout(time.Second))
			held := cluster.MustAcquire(t, holder(t, r), "k", ttl)
			waiting := inLine(t, r.Client, t.Context(), "k", 1)
			time.Sleep(100 * ms)
			require.NoError(t, held.Release(t.Context()))
			require.NoError(t, locked(t, waiting).Release(t.Context()))
			time.Sleep(10 * ms)
			r.Servers[2].Down()
			r.Servers[1].Hang()
			for range 12 {
				err := r.With(redlock.Options{Wait: 20 * ms}).Do(t.Context(), "k", time.Second, nothing)
				requireOnly(t, err, redlock.ErrNoAnswer)
				require.ErrorContains(t, err, "no answer yet")
			}
			require.NoError(t, r.Servers.Heal())
		})
	}
}

// TestOldDenialsAreNoAnswer: a holder has denied a caller, and then all nodes fall silent. A second after the last denial a
// wait that ends while they are asked says no more that the lock is taken.
func TestOldDenialsAreNoAnswer(t *testing.T) {
	const ms = time.Millisecond
	for wait, want := range map[time.Duration]error{900 * ms: redlock.ErrTaken, 3 * time.Second: redlock.ErrNoAnswer} {
		cluster.Run(t, wait.String(), func(t *testing.T) {
			r := cluster.New(t, 3, cluster.NodeTimeout(5*time.Second))
			cluster.MustAcquire(t, cluster.ConnectOn(t, r.Machine, fakeredis.Addrs(r.Servers)), "k", ttl)
			time.AfterFunc(500*ms, func() {
				for _, s := range r.Servers {
					s.Hang()
				}
			})
			requireOnly(t, r.With(redlock.Options{Wait: wait}).Do(t.Context(), "k", time.Second, nothing), want)
			require.NoError(t, r.Servers.Heal())
		})
	}
}
