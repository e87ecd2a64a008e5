package harness

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redlock-go/redlock/bench/child"
	"github.com/redlock-go/redlock/bench/place"
	"github.com/redlock-go/redlock/bench/proxy"
	"github.com/redlock-go/redlock/bench/result"
	"github.com/redlock-go/redlock/internal/test/realredis"
)

// victim is the node that has the faults.
const victim = 0

// slowness is added to a round trip by [result.Slow].
const slowness = 20 * time.Millisecond

// site is the masters of a run and the network in front of them.
type site struct {
	addrs   []string
	servers []result.Server // what they are
	away    map[string]bool // those that did not answer at the beginning

	masters  *child.Process   // if embedded
	fleet    *realredis.Fleet // if real, and started here
	proxy    *proxy.Proxy     // if a cell needs one
	hasProxy bool             // the victim is reached through the proxy, always
}

// open starts what the options ask for, once for all cells: those with fewer
// nodes use the first of them.
func open(opts Options) (*site, error) {
	s := &site{addrs: opts.Nodes, hasProxy: opts.unwell()}
	var err error
	n := slices.Max(opts.Masters)
	switch {
	case len(opts.Nodes) > 0:
	case opts.Redis:
		if s.fleet, err = realredis.Launch(n, realredis.Options{Kind: opts.Server, Start: place.Serve, Persistent: opts.Persistent}); err == nil {
			s.addrs = s.fleet.Addrs()
		}
	default:
		s.masters, s.addrs, err = startMasters(n)
	}
	if err != nil {
		return nil, err
	}
	if s.hasProxy || slices.Max(opts.RTT) > 0 {
		if s.proxy, err = proxy.Start(s.addrs); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

// Close ends everything that open has started.
func (s *site) Close() error {
	var errs []error
	if s.proxy != nil {
		errs = append(errs, s.proxy.Close())
	}
	if s.masters != nil {
		errs = append(errs, s.masters.Close())
	}
	if s.fleet != nil {
		errs = append(errs, s.fleet.Close())
	}
	return errors.Join(errs...)
}

// nodes are the addresses that a cell's clients dial. A longer round trip is
// made by the proxy. In a run with faults the victim is reached through it in every cell,
// so that the healthy ones differ in nothing else; the other nodes are reached
// directly, and pay nothing for it.
func (s *site) nodes(c result.Cell) []string {
	addrs := slices.Clone(s.addrs[:c.Nodes])
	for i := range addrs {
		if c.RTT > 0 || i == victim && s.hasProxy {
			addrs[i] = s.proxy.Addrs[i]
		}
	}
	return addrs
}

// prepare makes the network that a cell wants.
func (s *site) prepare(c result.Cell) error {
	if s.proxy == nil {
		return nil
	}
	for i := range c.Nodes {
		if err := s.proxy.Delay(i, c.RTT, c.Jitter); err != nil {
			return err
		}
	}
	return nil
}

// disturbance is how a cell's fault is made and ended; nil if it has none.
func (s *site) disturbance(c result.Cell) *Disturbance {
	d := &Disturbance{Heal: func() error { return s.proxy.Pass(victim) }}
	switch c.Fault {
	case result.NoFault:
		return nil
	case result.Slow:
		d.Strike = func() error { return s.proxy.Delay(victim, c.RTT+slowness, c.Jitter) }
		d.Heal = func() error { return s.proxy.Delay(victim, c.RTT, c.Jitter) }
	case result.Hung:
		d.Strike = func() error { return s.proxy.Hang(victim) }
		if s.fleet != nil {
			d.Strike, d.Heal = s.fleet.Servers[victim].Stop, s.fleet.Servers[victim].Cont
		}
	case result.Refusing:
		d.Strike = func() error { return s.proxy.Refuse(victim) }
	case result.BlackHole:
		d.Strike = func() error { return s.proxy.BlackHole(victim) }
	case result.Restarting:
		return s.restarting()
	default:
		if c.Fault.OfClients() {
			return nil // the cell itself does it
		}
		d.Strike = func() error { return fmt.Errorf("no such fault: %s", c.Fault) }
		d.Heal = func() error { return nil }
	}
	return d
}

// restartEvery is how often [result.Restarting] does.
const restartEvery = 5 * time.Second

// restarting has the victim die and come back at once, then again and again.
func (s *site) restarting() *Disturbance {
	stop, ended := make(chan struct{}), make(chan error, 1)
	return &Disturbance{
		Strike: func() error {
			if err := s.die(); err != nil {
				return err
			}
			go func() {
				for {
					err := s.revive()
					select {
					case <-stop:
						ended <- err
						return
					case <-time.After(restartEvery):
					}
					if err = errors.Join(err, s.die()); err != nil {
						ended <- err
						return
					}
				}
			}()
			return nil
		},
		Heal: func() error { close(stop); return <-ended },
	}
}

// die ends the victim. Embedded masters and running ones stay alive, and the proxy hides them: the
// difference shows only when they are back with their keys.
func (s *site) die() error {
	if err := s.proxy.Refuse(victim); err != nil || s.fleet == nil {
		return err
	}
	return s.fleet.Servers[victim].Kill()
}

// revive brings the victim back.
func (s *site) revive() error {
	if s.fleet != nil {
		if err := s.fleet.Servers[victim].Restart(); err != nil {
			return err
		}
	}
	return s.proxy.Pass(victim)
}
