package histories

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/testkit/virtual"
)

type history struct {
	*plan
	*virtual.World
	began  time.Time
	ledger ledger
	watch  watch

	owners owners

	ctx  context.Context // ends with the work
	stop context.CancelFunc
	all  sync.WaitGroup // callers, faults

	mu        sync.Mutex
	machines  []*virtual.Machine            // of clients, the present ones
	clientsOn map[*virtual.Machine][]layout // the layouts of the clients on them
	others    []atomic.Pointer[redlock.Client]
	forgot    []time.Time    // when a node lost its keys last
	standing  int            // faults in force
	fault     time.Time      // the last one's end
	leftovers map[string]int // a key's node with one
	failure   string         // the first
	events    []string
}

// run has a history happen in a bubble, and returns its failure, or nothing.
func run(t *testing.T, p *plan) (h *history) {
	defer func() {
		if v := recover(); v != nil { // goroutines wait for ever
			panic(fmt.Sprintf("%v\n%s", v, h.report()))
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		h = &history{plan: p, leftovers: map[string]int{}, clientsOn: map[*virtual.Machine][]layout{}, forgot: make([]time.Time, len(p.nodes))}
		h.World = virtual.New(t, p.seed, len(p.nodes), p.nodes...)
		h.ledger.init(h)
		h.watch.init(h)
		h.Servers.Deny(p.deny...)
		time.Sleep(maxTTL + time.Second) // until nodes have been up for long enough to vote
		h.initialize()
		h.live()
		h.end()
	})
	return h
}

// initialize gives the nodes of fenced clients their first floor.
func (h *history) initialize() {
	if h.fenced {
		c := h.Client(func(c *redlock.Config) { c.Fenced, c.MaxTTL = true, maxTTL })
		ctx, cancel := context.WithTimeout(h.T.Context(), time.Minute)
		defer cancel()
		if err := c.InitFencing(ctx); err != nil {
			h.fail("InitFencing: %v", err)
		}
		_ = c.Close()
	}
	h.began = time.Now()
	if os.Getenv("REDLOCK_COMMANDS") != "" { // the log has those of the clients, too
		for node, s := range h.Servers {
			s.OnCommand(func(conn int64, words []string) { h.log("node %d, connection %d: %q", node, conn, words) })
		}
	}
	h.owners.init(h.Servers, h.keys, h.troubled, h.fail)
}

// live starts all goroutines, and returns when it is over.
func (h *history) live() {
	h.ctx, h.stop = context.WithCancel(h.T.Context())
	defer h.stop()
	h.machines = make([]*virtual.Machine, len(h.clients))
	h.others = make([]atomic.Pointer[redlock.Client], len(h.clients))
	if h.changes != nil {
		h.beginChanges()
	}
	h.all.Go(h.watch.run)
	for i := range h.clients {
		if h.changes != nil {
			h.all.Go(func() { h.changingSessions(i) })
			continue
		}
		h.all.Go(func() { h.sessions(i) })
	}
	for i := range h.foreign {
		h.all.Go(func() { h.foreigner(i) })
	}
	for i := range h.stir.operators {
		h.all.Go(func() { h.operator(i) })
	}
	var faults sync.WaitGroup
	if h.stir.outages {
		faults.Go(h.outages)
	}
	for i := range h.troubles {
		faults.Go(func() { h.trouble(i) })
	}
	faults.Wait()
	h.watch.calmFrom(time.Now().Add(settle))
	if h.troubles == 0 {
		h.watch.calmFrom(time.Now())
	}
	for end := time.Now().Add(h.calm); time.Now().Before(end) && !h.failed(); {
		time.Sleep(100 * time.Millisecond)
	}
	h.stop()
}

func (h *history) rng(of ...int) random {
	n := uint64(0)
	for _, i := range of {
		n = n<<8 | uint64(i+1)
	}
	return newRandom(h.seed, n)
}

// pause sleeps, but not beyond the end of the work, and reports this.
func (h *history) pause(d time.Duration) (fine bool) { return rest(h.ctx, d) }

func rest(ctx context.Context, d time.Duration) (fine bool) {
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return ctx.Err() == nil
}

func (h *history) log(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.note(fmt.Sprintf(format, args...))
}

const keptEvents = 400

func (h *history) note(text string) {
	if len(h.events) >= 2*keptEvents {
		h.events = append(h.events[:0], h.events[keptEvents:]...)
	}
	h.events = append(h.events, fmt.Sprintf("%10.4f %s", time.Since(h.began).Seconds(), text))
}

// fail notes the first failure, and ends the work.
func (h *history) fail(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.failure == "" {
		h.failure = fmt.Sprintf("at %.4f s: ", time.Since(h.began).Seconds()) + fmt.Sprintf(format, args...)
		h.note("FAILED " + h.failure)
		h.events = append(h.events, "(afterwards:)")
		if h.stop != nil {
			h.stop()
		}
	}
}

func (h *history) failed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.failure != ""
}

func (h *history) report() string {
	if h == nil {
		return ""
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	test := "TestHistories"
	switch {
	case h.permits:
		test = "TestChoices"
	case h.shares:
		test = "TestShares"
	case h.changes != nil:
		test = "TestChanges"
	}
	return fmt.Sprintf("seed %d: %s\n%v\n%s\nagain: REDLOCK_SEED=%d go test -run %s$ ./internal/test/histories\n",
		h.seed, h.failure, h.plan, strings.Join(h.events[max(0, len(h.events)-keptEvents):], "\n"), h.seed, test)
}

func (h *history) connect(p *process, i int, cfg redlock.Config, tracks bool) (*virtual.Machine, error) {
	layouts := h.configure(i, &cfg)
	h.mu.Lock()
	m := h.Machine()
	h.machines[i], h.clientsOn[m] = m, layouts
	h.mu.Unlock()
	if !tracks {
		m.Wrap = func(c net.Conn) net.Conn { return noPushes{c} }
	}
	c, err := m.Client(cfg)
	p.runs(c)
	return m, err
}

// noPushes wraps a connection such that its client may not track keys.
type noPushes struct{ net.Conn }

func (c noPushes) Write(b []byte) (int, error) {
	return c.Conn.Write([]byte(strings.ReplaceAll(string(b), "TRACKING", "NOTRACKS")))
}
