package e2e

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/knobs"
	"github.com/redlock-go/redlock/internal/realredis"
	"github.com/redlock-go/redlock/internal/testkit"
	"github.com/redlock-go/redlock/internal/testkit/cluster"
)

// BenchmarkRealRelease tells what a release costs a server of Valkey 9: in the
// command alone, by the server's own account, and of all its time on a processor
// in a pair of acquire and release. One goroutine makes a call for each key; 64
// have the script take many keys at once.
func BenchmarkRealRelease(b *testing.B) {
	servers := realredis.StartN(b, 3, realredis.Options{Kind: realredis.Valkey9})
	admins := cluster.NewAdmins(b, servers)
	for _, goroutines := range []int{1, 64} {
		for _, c := range []struct {
			name, command string
			scripted      bool
		}{{"native", "delifeq", false}, {"script", "evalsha", true}} {
			b.Run(fmt.Sprintf("%s/goroutines=%d", c.name, goroutines), func(b *testing.B) {
				client, err := redlock.New(knobs.With(redlock.Config{Nodes: cluster.RealAddrs(servers), NodeTimeout: testkit.Patience}, func(k *knobs.Knobs) { k.Scripted = c.scripted }))
				require.NoError(b, err)
				defer client.Close()
				var before, after expense
				for _, a := range admins {
					require.NoError(b, a.Conn.SetDeadline(time.Time{}))
					a.Must("CONFIG RESETSTAT")
					before.read(b, a, c.command)
				}
				pairs(b, client, goroutines)
				cluster.AwaitNothing(b, admins)
				for _, a := range admins {
					after.read(b, a, c.command)
				}
				released := float64(b.N * len(admins))
				b.ReportMetric(after.usec/released, "command-µs/release")
				b.ReportMetric(released/after.calls, "keys/call")
				b.ReportMetric((after.cpu-before.cpu)*1e6/released, "server-µs/pair")
			})
		}
	}
}

// pairs acquires and releases b.N times, by so many goroutines.
func pairs(b *testing.B, client *redlock.Client, goroutines int) {
	left := atomic.Int64{}
	left.Store(int64(b.N))
	done := make(chan error, goroutines)
	b.ResetTimer()
	for g := range goroutines {
		go func() {
			key := fmt.Sprint("lock:", g)
			for left.Add(-1) >= 0 {
				l, err := client.TryAcquire(context.Background(), key, ttl)
				if err == nil {
					err = l.Release(context.Background())
				}
				if err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range goroutines {
		require.NoError(b, <-done)
	}
	b.StopTimer()
}

// expense is the time that servers report as spent.
type expense struct {
	calls, usec float64 // of one command
	cpu         float64 // seconds, of all
}

// read adds what one server says.
func (e *expense) read(b *testing.B, a *cluster.Admin, command string) {
	number := func(info, pattern string) float64 {
		found := regexp.MustCompile(pattern).FindStringSubmatch(info)
		if found == nil {
			return 0
		}
		n, err := strconv.ParseFloat(found[1], 64)
		require.NoError(b, err)
		return n
	}
	stats := a.Text("INFO commandstats")
	e.calls += number(stats, "cmdstat_"+command+`:calls=(\d+)`)
	e.usec += number(stats, "cmdstat_"+command+`:calls=\d+,usec=(\d+)`)
	cpu := a.Text("INFO cpu")
	e.cpu += number(cpu, `used_cpu_sys:([\d.]+)`) + number(cpu, `used_cpu_user:([\d.]+)`)
}
