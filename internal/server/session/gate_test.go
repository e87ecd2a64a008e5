package session

import (
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// nodes answer a thousand commands a second, and WAIT at the end of its client.
type nodes struct {
	known
	mu           sync.Mutex
	inside, most int
	order        []int
}

func (n *nodes) Plan(args []string, r *Reply) Plan {
	if args[0] == "WAIT" {
		return Plan{Alone: true, Waits: true, Run: func(ctx context.Context, r *Reply) func() {
			<-ctx.Done()
			return nil
		}}
	}
	return Plan{Run: func(ctx context.Context, r *Reply) func() {
		if ctx.Err() != nil {
			return nil
		}
		n.mu.Lock()
		if i, err := strconv.Atoi(args[0]); err == nil {
			n.order = append(n.order, i)
		}
		n.inside++
		n.most = max(n.most, n.inside)
		takes := time.Duration(n.inside) * time.Millisecond
		n.mu.Unlock()
		time.Sleep(takes)
		n.mu.Lock()
		n.inside--
		n.mu.Unlock()
		r.OK()
		return nil
	}}
}

// TestGate: as many commands run as are answered well within their time, in the order of arrival.
// Commands of a departed client take no room, and neither do commands waiting for other clients.
func TestGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &nodes{}
		s, connect := serve(Limits{Pipeline: 1 << 20, Command: 1 << 30, Memory: 1 << 40}, func(int64, net.Addr, Push) Commands { return n })
		dial := func() net.Conn {
			mine := connect()
			go func() { _, _ = io.Copy(io.Discard, mine) }()
			return mine
		}
		for range maxRoom + 1 {
			_, err := dial().Write([]byte("WAIT\r\n"))
			require.NoError(t, err)
		}
		stays, goes := dial(), dial()
		const commands = 3000
		for i := range commands {
			fmt.Fprintf(stays, "%d\r\n", i)
			fmt.Fprintf(goes, "gone\r\n")
			if i%20 == 0 {
				synctest.Wait() // they are in line
			}
		}
		require.NoError(t, goes.Close())
		inside := func() (now, most int) {
			n.mu.Lock()
			defer n.mu.Unlock()
			return n.inside, n.most
		}
		_, most := inside()
		time.Sleep(2 * time.Second)
		late, _ := inside()
		time.Sleep(time.Hour)
		require.LessOrEqual(t, most, startRoom)
		require.LessOrEqual(t, late, minRoom+8)
		latest := 0
		for _, i := range n.order {
			require.Greater(t, i, latest-maxRoom) // those admitted at one moment are in no order
			latest = max(latest, i)
		}
		require.Len(t, n.order, commands)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		s.Stop(ctx)
		require.Zero(t, s.gate.inside)
		require.Empty(t, s.gate.line)
	})
}

// TestNoMemoryForMore: a connection has no more commands under way than there is memory for and its limit allows. A full one
// ends behind a waiting command.
func TestNoMemoryForMore(t *testing.T) {
	for _, limits := range []Limits{{Memory: 100 * overhead}, {Pipeline: 99}} {
		synctest.Test(t, func(t *testing.T) { testFull(t, limits) })
	}
}

func testFull(t *testing.T, limits Limits) {
	s, dial := serve(limits, func(int64, net.Addr, Push) Commands { return &nodes{} })
	replies := func(commands string) string {
		mine := dial()
		go func() { _, _ = mine.Write([]byte(commands)) }()
		time.Sleep(time.Second)
		most := 0
		s.mu.Lock()
		for n := range s.sessions {
			n.mu.Lock()
			most = max(most, n.depth)
			n.mu.Unlock()
		}
		s.mu.Unlock()
		require.LessOrEqual(t, most, 100)
		_ = mine.SetReadDeadline(time.Now().Add(time.Hour))
		all, _ := io.ReadAll(mine)
		require.NoError(t, mine.Close())
		return string(all)
	}
	require.Equal(t, strings.Repeat("+OK\r\n", 1000), replies(strings.Repeat("1\r\n", 1000)))
	require.Contains(t, replies("WAIT\r\n"+strings.Repeat("1\r\n", 1000)), string(errBehind))
	s.Stop(t.Context())
	require.Zero(t, s.budget.used.Load())
}
