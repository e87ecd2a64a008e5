package frontend_test

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/server/frontend"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/virtual"
)

// TestSplits: three clients of one Redis, in three zones with a front end and a master each, try a
// free lock at once: one gets it.
func TestSplits(t *testing.T) {
	fires := 60
	if testkit.Long() {
		fires = 1000
	}
	for _, far := range []time.Duration{2 * time.Millisecond, 10 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			w := virtual.New(t, 1, 3)
			defer w.Close()
			random := rand.New(rand.NewPCG(3, 4))
			var lines []*bufio.ReadWriter
			for zone := range 3 {
				m := w.Machine()
				for i, node := range w.Nodes {
					trip := far
					if i == zone {
						trip = far / 10
					}
					m.Link(node).Delay(trip/2, trip/2, trip/20)
				}
				client, _ := w.ClientOn(m)
				require.NoError(t, client.Ready(t.Context()))
				front := frontend.New(frontend.Config{Client: client})
				l, err := w.Net.Listen("tcp", fmt.Sprintf("front%d:6380", zone))
				require.NoError(t, err)
				go func() { _ = front.Serve(l) }()
				defer front.Stop(t.Context())
				c, err := w.Net.Dialer(fmt.Sprint("app", zone))(t.Context(), "tcp", l.Addr().String())
				require.NoError(t, err)
				defer c.Close()
				lines = append(lines, bufio.NewReadWriter(bufio.NewReader(c), bufio.NewWriter(c)))
			}
			do := func(line *bufio.ReadWriter, words ...string) string {
				_, _ = line.WriteString(testkit.Encode(words...))
				_ = line.Flush()
				reply, err := line.ReadString('\n')
				if err != nil {
					t.Error(err)
				}
				return strings.TrimSpace(reply)
			}
			none := 0
			for n := range fires {
				var ran, at, most atomic.Int32
				var all sync.WaitGroup
				for zone, line := range lines {
					late := time.Duration(random.Int64N(int64(far / 4)))
					all.Go(func() {
						time.Sleep(late)
						key, value := fmt.Sprint("job:", n), fmt.Sprint("of zone ", zone)
						if got := do(line, "SET", key, value, "NX", "PX", "30000"); got != "+OK" {
							require.Equal(t, "$-1", got)
							return
						}
						ran.Add(1)
						most.Store(max(most.Load(), at.Add(1)))
						time.Sleep(20 * far)
						at.Add(-1)
						if got := do(line, "DELEX", key, "IFEQ", value); got != ":1" {
							t.Error(got)
						}
					})
				}
				all.Wait()
				require.LessOrEqual(t, most.Load(), int32(1))
				if ran.Load() == 0 {
					none++
				}
				time.Sleep(5 * far)
			}
			require.Zero(t, none, "fires without a holder, of %d", fires)
		})
	}
}
