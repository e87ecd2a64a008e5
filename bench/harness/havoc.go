package harness

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/redlock-go/redlock/internal/test/realredis"
)

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
