package frontend_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/server/frontend"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/virtual"
)

// A history is clients of one Redis behind several front ends, in virtual time, while nodes fail, front ends are killed
// and connections end. No two clients may believe they hold a lock: each believes for its whole TTL, from the reply on.

// historyTTL bounds the TTLs.
const historyTTL = 2 * time.Second

type history struct {
	*virtual.World
	mu     sync.Mutex
	rng    *rand.Rand
	belief map[string]belief
	grants int
	failed string
}

type belief struct {
	holder string
	until  time.Time
}

func (h *history) n(most int) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.rng.IntN(most)
}

func (h *history) upTo(most time.Duration) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Duration(h.rng.Int64N(int64(most)))
}

func (h *history) pause(most time.Duration) { time.Sleep(h.upTo(most)) }

// believes notes that a client believes it holds a lock, by a new grant or an extension.
func (h *history) believes(key, holder string, until time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	// The reply was on its way for up to 150 us, and the client rounds down to milliseconds.
	if b := h.belief[key]; b.holder != holder && time.Now().Before(b.until.Add(-time.Millisecond)) && h.failed == "" {
		h.failed = fmt.Sprintf("%s has %s, and %s believes to have it for %v", holder, key, b.holder, time.Until(b.until))
	}
	h.belief[key] = belief{holder, until}
	h.grants++
}

// doubts notes the end of a client's belief.
func (h *history) doubts(key, holder string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.belief[key].holder == holder {
		delete(h.belief, key)
	}
}

// runHistory runs one history, and returns how it failed and the number of grants.
func runHistory(t *testing.T, seed uint64) (failed string, grants int) {
	synctest.Test(t, func(t *testing.T) {
		h := &history{World: virtual.New(t, seed, 3+2*int(seed%2)), rng: rand.New(rand.NewPCG(seed, 1)), belief: map[string]belief{}}
		defer h.Close()
		time.Sleep(historyTTL + time.Second) // until nodes have been up for long enough to vote
		ctx, stop := context.WithTimeout(t.Context(), 40*time.Second)
		defer stop()
		var all sync.WaitGroup
		for i := range 2 {
			machine := h.Machine()
			all.Go(func() { h.frontEnds(ctx, machine, fmt.Sprintf("front%d:6380", i)) })
		}
		for i := range 6 {
			all.Go(func() { h.client(ctx, fmt.Sprint("client", i)) })
		}
		all.Go(func() { h.trouble(ctx) })
		all.Wait()
		failed, grants = h.failed, h.grants
	})
	return failed, grants
}

// frontEnds is a front end, killed now and then, and started anew.
func (h *history) frontEnds(ctx context.Context, machine *virtual.Machine, addr string) {
	for ctx.Err() == nil {
		client, err := machine.Client(redlock.Config{Nodes: h.Nodes, MaxTTL: historyTTL, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			h.failed = err.Error()
			return
		}
		front := frontend.New(frontend.Config{Client: client, MaxTTL: historyTTL})
		l, err := h.Net.Listen("tcp", addr)
		if err != nil {
			h.failed = err.Error()
			return
		}
		served := testkit.Start(func() error { return front.Serve(l) })
		life, cancel := context.WithTimeout(ctx, time.Second+h.upTo(8*time.Second))
		<-life.Done()
		cancel()
		front.Stop(life) // without time for replies
		<-served
		_ = client.Close()
	}
}

// trouble makes faults of the nodes, a minority at a time.
func (h *history) trouble(ctx context.Context) {
	for ctx.Err() == nil {
		s := h.Servers[h.n(len(h.Servers))]
		switch h.n(5) {
		case 0:
			s.Hang()
		case 1:
			s.Mute()
		case 2:
			s.Delay(h.upTo(45 * time.Millisecond))
		case 3:
			s.Down()
			h.pause(300 * time.Millisecond)
			_ = s.Restart(true)
			time.Sleep(historyTTL + 500*time.Millisecond) // as an operator waits
		case 4:
			s.ResetConns()
		}
		h.pause(time.Second)
		_ = s.Heal()
		h.pause(200 * time.Millisecond)
	}
}

// client locks, works, extends and releases, like a library for one Redis.
func (h *history) client(ctx context.Context, name string) {
	wire := &redisClient{history: h, name: name}
	defer wire.hangUp()
	for n := 0; ctx.Err() == nil; n++ {
		h.pause(30 * time.Millisecond)
		// One value for many grants, as in libraries. An unanswered command may be executed later,
		// as on one Redis, and must not name a later grant.
		key, value := fmt.Sprint("k", h.n(2)), fmt.Sprint(name, "-of-connection-", wire.dials)
		if h.n(2) == 0 {
			value += fmt.Sprint("-", n)
		}
		ttl := 100 + h.n(1800)
		if wire.do(ctx, "SET "+key+" "+value+" NX PX "+strconv.Itoa(ttl)) != "+OK" {
			continue
		}
		until := time.Now().Add(time.Duration(ttl) * time.Millisecond)
		h.believes(key, name, until)
		h.pause(100 * time.Millisecond)
		if h.n(3) == 0 && time.Now().Before(until) {
			if wire.do(ctx, "SET "+key+" "+value+" XX PX "+strconv.Itoa(ttl)) == "+OK" {
				until = time.Now().Add(time.Duration(ttl) * time.Millisecond)
				h.believes(key, name, until)
			}
			h.pause(50 * time.Millisecond)
		}
		switch h.n(4) {
		case 0: // it ends by its TTL, and is released late
			h.pause(time.Duration(ttl) * time.Millisecond)
			time.Sleep(time.Until(until))
			wire.do(ctx, "DELEX "+key+" IFEQ "+value)
		case 1: // the client dies
			h.doubts(key, name)
			wire.hangUp()
		default:
			h.doubts(key, name)
			wire.do(ctx, "DELEX "+key+" IFEQ "+value)
		}
	}
}

// redisClient is a connection to one of the front ends.
type redisClient struct {
	*history
	name string
	conn net.Conn
	in   *bufio.Reader

	dials int
}

func (c *redisClient) hangUp() {
	if c.conn != nil {
		_ = c.conn.Close()
		c.conn = nil
		c.dials++
	}
}

// do sends a command and returns the line of its reply, or nothing if the connection has ended.
func (c *redisClient) do(ctx context.Context, line string) string {
	if c.conn == nil {
		conn, err := c.Net.Dialer(c.name)(ctx, "tcp", fmt.Sprintf("front%d:6380", c.n(2)))
		if err != nil {
			c.pause(50 * time.Millisecond)
			return ""
		}
		c.conn, c.in = conn, bufio.NewReader(conn)
	}
	_ = c.conn.SetDeadline(time.Now().Add(3 * time.Second))
	if _, err := c.conn.Write([]byte(line + "\r\n")); err != nil {
		c.hangUp()
		return ""
	}
	reply, err := c.in.ReadString('\n')
	if err != nil {
		c.hangUp()
	}
	return strings.TrimSpace(reply)
}

// TestHistories: no two clients hold a lock, in histories of many seeds; REDLOCK_SEED runs one.
func TestHistories(t *testing.T) {
	from, to := uint64(0), uint64(2)
	switch {
	case testkit.Long():
		to = 2000
	case testkit.Race:
		to = 1
	}
	if seed, err := strconv.ParseUint(os.Getenv("REDLOCK_SEED"), 10, 64); err == nil {
		from, to = seed, seed+1
	}
	for seed := from; seed < to; seed++ {
		failed, grants := runHistory(t, seed)
		require.Empty(t, failed, "REDLOCK_SEED=%d", seed)
		require.Greater(t, grants, 50, "REDLOCK_SEED=%d", seed)
	}
}
