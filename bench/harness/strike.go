package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/redlock-go/redlock/bench/result"
	"github.com/redlock-go/redlock/internal/test/realredis"
)

// strike kills processes, one after the other, and replaces each.
func (c *contest) strike(ctx context.Context) error {
	every := 3 * c.spec.Config.TTL
	for at := c.board.from.Load() + int64(every)/2; at+int64(every) <= c.board.to.Load(); at += int64(every) {
		if err := sleep(ctx, time.Duration(at-now())); err != nil {
			return err
		}
		caught := c.headWaiter
		if c.cell.Fault == result.KillHolder {
			caught = c.stopHolder
		}
		place, err := caught(time.Now().Add(every / 2))
		if err != nil {
			return err
		}
		if err := c.replace(place); err != nil {
			return err
		}
	}
	return nil
}

// replace kills a process, and starts another in its place.
func (c *contest) replace(place int) error {
	c.mu.Lock()
	p := c.crew[place]
	c.crew[place] = nil
	c.gone = append(c.gone, p)
	c.mu.Unlock()
	if err := cmp.Or(p.Signal(os.Kill), c.start(place)); err != nil {
		return err
	}
	c.order(place)
	return nil
}

// stopHolder stops the process that holds the first key.
func (c *contest) stopHolder(limit time.Time) (int, error) {
	s := &c.board.slots[0]
	for time.Now().Before(limit) {
		holder, granted := s.holder.Load(), s.granted.Load()
		if holder == 0 {
			time.Sleep(50 * time.Microsecond)
			continue
		}
		place := int(holder-1) / c.cell.Concurrency
		if err := c.crew[place].Signal(sigStop); err != nil {
			return 0, err
		}
		// The signal has arrived when the process's threads have been scheduled.
		time.Sleep(2 * time.Millisecond)
		if s.holder.Load() == holder && s.granted.Load() == granted {
			return place, nil // nothing was asked of the nodes since
		}
		if err := c.crew[place].Signal(sigCont); err != nil {
			return 0, err
		}
	}
	return 0, errors.New("no holder was caught: -hold is too short")
}

// headWaiter finds the process whose last grant is the oldest: in a fair queue of
// processes it is the head.
func (c *contest) headWaiter(time.Time) (int, error) {
	head, oldest := 0, int64(math.MaxInt64)
	for place := range c.crew {
		last := int64(0)
		for i := range c.cell.Concurrency {
			last = max(last, c.board.records[place*c.cell.Concurrency+i].last.Load())
		}
		if holder := c.board.slots[0].holder.Load(); last < oldest && (holder == 0 || int(holder-1)/c.cell.Concurrency != place) {
			head, oldest = place, last
		}
	}
	return head, nil
}

// Between two faults by chance.
const calmLeast, calmMore = 500 * time.Millisecond, 1500 * time.Millisecond

// havoc makes faults of all kinds, one after another, until the window ends.
func (c *contest) havoc(ctx context.Context) error {
	if c.site.fleet == nil {
		return errors.New("-fault any: the masters must be real ones that this program starts")
	}
	for {
		if err := sleep(ctx, calmLeast+rand.N(calmMore)); err != nil {
			return err
		}
		if now() > c.board.to.Load() {
			return nil
		}
		if err := c.disturb(ctx); err != nil {
			return err
		}
		c.faults++
	}
}

// disturb does one thing to up to three masters, where that is a majority of five, or to a process, and undoes it.
func (c *contest) disturb(ctx context.Context) error {
	all, ttl := c.site.fleet.Servers[:c.cell.Nodes], c.spec.Config.TTL
	var some []*realredis.Server
	for _, i := range rand.Perm(len(all))[:1+rand.IntN(min(3, len(all)))] {
		some = append(some, all[i])
	}
	each := func(do func(*realredis.Server) error) error {
		var errs []error
		for _, s := range some {
			errs = append(errs, do(s))
		}
		return errors.Join(errs...)
	}
	process := rand.IntN(len(c.crew))
	switch rand.IntN(8) {
	case 0, 1:
		if err := each((*realredis.Server).Kill); err != nil {
			return err
		}
		_ = sleep(ctx, rand.N(ttl))
		return each(func(s *realredis.Server) error {
			if s.Restart() == nil {
				return nil
			}
			return s.Restart() // the first may have been too slow, where all stood still meanwhile
		})
	case 2, 3:
		if err := each((*realredis.Server).Stop); err != nil {
			return err
		}
		_ = sleep(ctx, rand.N(2*ttl))
		return each((*realredis.Server).Cont)
	case 4, 5:
		return each(func(s *realredis.Server) error {
			_, err := order(ctx, s.Addr(), "CLIENT KILL TYPE normal SKIPME yes", 10*time.Second)
			return err
		})
	case 6:
		p := c.crew[process]
		_ = p.Signal(sigStop)
		_ = sleep(ctx, rand.N(2*ttl))
		return p.Signal(sigCont)
	}
	return c.replace(process)
}

// awaitEmpty waits until no master has a key: locks end with their TTL, and so do gates. The place of a process that was
// killed, or cut off as it left, delays no other, and stays for a minute.
func (c *contest) awaitEmpty(ctx context.Context) error {
	for deadline := time.Now().Add(5 * c.spec.Config.TTL); ; {
		var left []string
		for _, addr := range c.site.addrs[:c.cell.Nodes] {
			lines, err := order(ctx, addr, "KEYS *", 10*time.Second)
			if err != nil {
				return err
			}
			left = append(left, slices.DeleteFunc(lines, func(line string) bool {
				return line == "" || strings.ContainsRune("*$+", rune(line[0])) || strings.HasSuffix(line, ":redlock:queue") || strings.Contains(line, ":redlock:ticket:")
			})...)
		}
		if len(left) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("keys are left: %v", left)
		}
		if err := sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}
