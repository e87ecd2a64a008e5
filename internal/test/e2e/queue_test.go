package e2e

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// TestPings: a caller who waits costs the nodes few questions, however short NodeTimeout is.
func TestPings(t *testing.T) {
	for _, timeout := range []time.Duration{0, time.Millisecond} {
		cluster.Virtually(t, func(t *testing.T) {
			r := cluster.New(t, 3, cluster.NodeTimeout(timeout))
			r.Servers.Take("k")
			ctx, cancel := context.WithCancel(t.Context())
			waiting := testkit.Start(func() error { _, err := r.Acquire(ctx, "k", ttl); return err })
			time.Sleep(10 * time.Second)
			pings := func() (n int64) {
				r.Servers.Each(func(s *fakeredis.Server) { n += s.Count("PING") })
				return n
			}
			before := pings()
			time.Sleep(10 * time.Second)
			n := pings() - before
			require.LessOrEqual(t, n, int64(150), "NodeTimeout %v", timeout)
			require.GreaterOrEqual(t, n, int64(100))
			cancel()
			require.Error(t, testkit.Get(t, waiting))
		})
	}
}

// TestAPlaceIsTakenBack: a node that refuses, or misses, what takes a process out of a queue is asked again, but not
// if the process waits there again.
func TestAPlaceIsTakenBack(t *testing.T) {
	for name, fault := range map[string]string{"refused": "-LOADING not now\r\n", "lost": "", "forgotten": "-NOSCRIPT No matching script.\r\n"} {
		cluster.Run(t, name, func(t *testing.T) {
			r := cluster.New(t, 3)
			r.Servers.Take("k")
			places := func() (n int) {
				for _, s := range r.Servers {
					for _, key := range s.Keys() {
						if strings.HasPrefix(key, "k:redlock:") {
							n++
						}
					}
				}
				return n
			}
			wait := func() (leave func()) {
				ctx, cancel := context.WithCancel(t.Context())
				waiting := testkit.Start(func() error { _, err := r.Acquire(ctx, "k", ttl); return err })
				testkit.Await(t, "a place", func() bool { return places() == 2 })
				return func() {
					cancel()
					require.Error(t, testkit.Get(t, waiting))
				}
			}
			var left atomic.Int64 // faults to come
			for _, s := range r.Servers {
				s.OnCommand(func(_ int64, args []string) {
					if strings.Contains(strings.Join(args, " "), " leave ") && left.Add(-1) >= 0 {
						if fault == "" {
							s.DropConn("EVALSHA", 1)
						} else {
							s.ErrorReply("EVALSHA", strings.TrimSuffix(fault[1:], "\r\n"), 1)
						}
					}
				})
			}
			faulty := func() {
				left.Store(1)
				wait()()
				testkit.Await(t, "the fault", func() bool { return left.Load() <= 0 })
			}
			faulty()
			began := time.Now()
			testkit.Await(t, "no place", func() bool { return places() == 0 })
			require.Less(t, time.Since(began), time.Second)
			require.EqualValues(t, -1, left.Load(), "one repeat")
			if name != "refused" {
				return // the process may wait at another node now, or has left at once, by the text of the script
			}
			faulty()
			leave := wait() // in the place that was not taken back
			time.Sleep(2 * time.Second)
			require.Equal(t, 2, places())
			require.Zero(t, left.Load(), "its place is taken back")
			leave()
			testkit.Await(t, "no place", func() bool { return places() == 0 })
		})
	}
}
