package lab

import (
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/redlock-go/redlock/bench/network/history"
	"github.com/redlock-go/redlock/bench/network/nemesis"
	"github.com/redlock-go/redlock/bench/network/wire"
	"github.com/redlock-go/redlock/bench/network/workload"
)

// live starts the workers, injects the faults, and looks at the masters and the wire until the clients have ended.
func (l *lab) live(ctx context.Context, faults []*nemesis.Fault) error {
	s := &l.Setup
	s.Start = history.Now().Add(300 * time.Millisecond)
	s.Heal = s.Start.Add(s.Faults + l.quarantine())
	s.Stop = s.Heal.Add(s.Calm)
	l.file.Add(history.Record{Setup: s})
	for _, in := range l.inputs {
		if err := json.NewEncoder(in).Encode(workload.Times{Start: s.Start, Heal: s.Heal, Stop: s.Stop}); err != nil {
			return err
		}
	}
	over := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() { history.Every(250*time.Millisecond, over, func() { l.seeKeys(false) }) })
	watch.Go(func() { history.Every(time.Second, over, l.dials()) })
	watch.Go(func() { workload.Pauses(over, l.file, 0, nil) })
	injected := make(chan struct{})
	go func() { nemesis.Inject(l, faults, s.Start); close(injected) }()
	select {
	case <-injected:
	case <-ctx.Done():
	}
	for _, f := range faults {
		f.Hit = clients(f.Hit)
		l.file.Add(history.Record{Fault: &f.Fault})
	}
	err := l.await(ctx)
	close(over)
	watch.Wait()
	l.seeKeys(true)
	return err
}

// clients are the numbers of those on the hosts.
func clients(hosts []int) (all []int) {
	for _, h := range hosts {
		all = append(all, clientOf(h))
	}
	return all
}

// await waits for the ends of the clients.
func (l *lab) await(ctx context.Context) error {
	ended := make(chan error)
	n := 0
	for number, c := range l.programs {
		if number != serveHost {
			n++
			go func() { ended <- c.Wait() }()
		}
	}
	late := time.After(l.Setup.Stop.Sub(history.Now()) + 30*time.Second)
	var err error
	for range n {
		select {
		case one := <-ended:
			err = errors.Join(err, one)
		case <-ctx.Done():
			return ctx.Err()
		case <-late:
			for _, c := range l.programs {
				_ = c.Process.Signal(syscall.SIGQUIT)
			}
			return errors.New("the clients do not end: see their .stderr")
		}
	}
	return err
}

// seeKeys notes what the masters have: keys that are used once, those that all want, and those without an expiry; of several groups
// each key once; last of all, everything.
func (l *lab) seeKeys(last bool) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	for _, m := range l.masters {
		seen, _ := m.keys(ctx)
		for _, s := range seen {
			known := history.Seen{Master: s.Master, Key: s.Key}
			isNew := l.Groups && !l.noted[known]
			l.noted[known] = true
			s.Last = last
			if last || isNew || s.TTL < 0 || strings.HasPrefix(s.Key, "once-") || strings.HasPrefix(s.Key, "hot") {
				l.file.Add(history.Record{Seen: &s})
			}
		}
	}
}

// dials notes the dials of each client to each master since the last time.
func (l *lab) dials() func() {
	var last [wire.Hosts][wire.Hosts]int64
	return func() {
		for c := range l.programs {
			for m := range l.masters {
				n := l.wire.Dials(c, m)
				if n > last[c][m] {
					l.file.Add(history.Record{Dials: &history.Dials{At: history.Now(), Client: clientOf(c), Master: m, Count: n - last[c][m]}})
				}
				last[c][m] = n
			}
		}
	}
}

// What the nemesis does.

// Wire is the wire.
func (l *lab) Wire() *wire.Wire { return l.wire }

// Link sets a host's link up or down.
func (l *lab) Link(host int, up bool) { _ = l.hosts[host].Link(up) }

// Signal sends a signal to the program of a host.
func (l *lab) Signal(host int, s syscall.Signal) {
	var cmd *exec.Cmd
	if m := l.masters[host]; m != nil {
		cmd = m.cmd
	} else {
		cmd = l.programs[host]
	}
	_ = cmd.Process.Signal(s)
}

// Kill kills a master.
func (l *lab) Kill(master int) { l.masters[master].kill() }

// Start starts a master again.
func (l *lab) Start(master int) { _ = l.masters[master].start() }
