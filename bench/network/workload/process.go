// Package workload is what the client processes do: their workers ask for locks, work under them, release them, and write down
// what they were told.
package workload

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/bench/network/history"
	"github.com/redlock-go/redlock/internal/base/clock"
)

// Verb is the first argument of a client process; a Plan follows.
const Verb = "client"

// Plan is what a client process is to do.
type Plan struct {
	history.Setup
	Client  int        // its number, from 1
	Nodes   [][]string // one group, or several
	Next    [][]string // those after a change
	Front   string     // the address of redlock serve, if it runs
	Dir     string
	OnceTTL time.Duration
}

// Times are read from standard input, once all processes are ready.
type Times struct{ Start, Heal, Stop history.Time }

// user is a lock client with the number of turns that use it.
type user struct {
	client *redlock.Client // nil of other libraries
	locks  library
	turns  *sync.WaitGroup
	step   int
}

// process is a client process.
type process struct {
	Plan
	Times
	file     *history.File
	register Register
	log      *os.File
	clock    hostClock
	workers  sync.WaitGroup
	mu       sync.Mutex
	now      user
}

func rndToken() string { return rand.Text() }

func (p *process) isCalm() bool { return history.Now() > p.Times.Heal }
func (p *process) isOver() bool { return history.Now() > p.Times.Stop }

// borrow is the client of the turn that begins now.
func (p *process) borrow() (user, func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now.turns.Add(1)
	return p.now, p.now.turns.Done
}

// use makes c the client of the turns that begin from now on, and returns the one before.
func (p *process) use(c *redlock.Client, locks library) (before user) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before, p.now = p.now, user{c, locks, &sync.WaitGroup{}, p.now.step + 1}
	return before
}

// Run is a client process.
func Run(argument string) (err error) {
	p := &process{}
	if err := json.Unmarshal([]byte(argument), &p.Plan); err != nil {
		return err
	}
	p.clock = newHostClock(p.Client)
	name := fmt.Sprint("client", p.Client)
	if p.file, err = history.Create(p.Dir, name); err != nil {
		return err
	}
	defer p.file.Close()
	if p.log, err = os.Create(filepath.Join(p.Dir, name+".log")); err != nil {
		return err
	}
	defer p.log.Close()
	if p.register, err = OpenRegister(filepath.Join(p.Dir, "register")); err != nil {
		return err
	}
	before := runtime.NumGoroutine()
	if err := p.connect(); err != nil {
		return err
	}
	fmt.Println("ready")
	if err := json.NewDecoder(bufio.NewReader(os.Stdin)).Decode(&p.Times); err != nil {
		return err
	}
	history.Sleep(p.Times.Start)
	over, watch := make(chan struct{}), sync.WaitGroup{}
	watch.Go(func() { Pauses(over, p.file, p.Client, p.threads()) })
	if p.Change {
		p.workers.Go(p.change)
	}
	p.start()
	p.workers.Wait()
	close(over)
	watch.Wait()
	p.end(before)
	return nil
}

// connect makes the client of the library.
func (p *process) connect() error {
	switch p.Library {
	case history.Redsync:
		p.use(nil, newRedsync(p.Nodes[0]))
		return nil
	case history.Ours:
	default:
		p.use(nil, newByHand(p.Nodes[0], p.Library, p.clock))
		return nil
	}
	clock.Play(p.clock.source)
	c, err := p.open(p.Nodes, nil)
	if err != nil {
		return err
	}
	p.use(c, ours{c})
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if p.Fenced {
		if err := c.InitFencing(ctx); err != nil {
			return err
		}
	}
	return c.ReadyAll(ctx)
}

// open makes a client of this library.
func (p *process) open(now, next [][]string) (*redlock.Client, error) {
	node := func(n redlock.Node) {
		p.file.Add(history.Record{Node: &history.Node{Client: p.Client, At: history.Now(), Up: n.Up, Addr: n.Addr}})
	}
	cfg := redlock.Config{
		Groups: now, NextGroups: next, Name: fmt.Sprint("client", p.Client), MaxTTL: p.MaxTTL, Fenced: p.Fenced, Portable: p.Portable,
		Logger: slog.New(slog.NewTextHandler(p.log, nil)),
		Hooks:  redlock.Hooks{NodeUp: node, NodeDown: node},
	}
	if !p.Groups {
		cfg.Groups, cfg.NextGroups, cfg.Nodes = nil, nil, now[0]
		if next != nil {
			cfg.NextNodes = next[0]
		}
	}
	return redlock.New(cfg)
}

// shutdown ends a client, and notes how.
func (p *process) shutdown(c *redlock.Client) *history.End {
	began := history.Now()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err := c.Shutdown(ctx)
	return &history.End{Client: p.Client, Shutdown: result(err), Took: history.Now().Sub(began)}
}

// end ends the process's client, and waits for its goroutines.
func (p *process) end(before int) {
	e := &history.End{Client: p.Client, Shutdown: history.OK}
	if p.now.client != nil {
		e = p.shutdown(p.now.client)
	}
	e.Before = before
	for range 40 {
		e.After = runtime.NumGoroutine()
		if e.After <= before {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	p.file.Add(history.Record{End: e})
}
