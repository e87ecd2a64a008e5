// Command fencing shows what a fencing token is for. A holder of a lock is stopped (SIGSTOP)
// beyond the validity of its lock, another holder writes meanwhile, and the first continues
// (SIGCONT) and writes too. Without a check of the token the stale write replaces the newer
// one; with the check the database refuses it.
//
//	go run .                         # SQLite, three new Redis servers
//	go run . -loop 100 -db postgres://user:password@host/database
//
// README.md lists what to copy.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redlock-go/redlock/bench/child"
	"github.com/redlock-go/redlock/bench/fencing/account"
	"github.com/redlock-go/redlock/bench/fencing/database"
	"github.com/redlock-go/redlock/internal/test/realredis"
)

// maxTTL is the longest TTL of the fleet. It is short, since the first start waits for it.
const maxTTL = 2 * time.Second

// options are the flags.
type options struct {
	loop      int
	db, nodes string
	ttl       time.Duration
	init      bool
}

func main() {
	child.Serve(holderEnv, hold)
	var o options
	flag.IntVar(&o.loop, "loop", 1, "`rounds`, each without the check and with it")
	flag.StringVar(&o.db, "db", "sqlite", `"sqlite", or a postgres:// URL`)
	flag.StringVar(&o.nodes, "nodes", "", "`host:port,…` of running servers (default: three new ones)")
	flag.BoolVar(&o.init, "init", false, "with -nodes: it is their first start as a fenced fleet")
	flag.DurationVar(&o.ttl, "ttl", 300*time.Millisecond, "time to live of a lock; about the time of a round")
	flag.Parse()
	if err := run(context.Background(), o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "fencing:", err)
		os.Exit(1)
	}
}

// run starts what is needed, plays the rounds, and reports. It returns an error if a stale
// write got through the check.
func run(ctx context.Context, o options, out io.Writer) (err error) {
	s := setup{Nodes: strings.Split(o.nodes, ","), TTL: o.ttl}
	if o.nodes == "" {
		fleet, err := realredis.Launch(3)
		if err != nil {
			return err
		}
		defer fleet.Close()
		s.Nodes, o.init = fleet.Addrs(), true
	}
	var remove func() error
	if s.Database, remove, err = database.New(o.db); err != nil {
		return err
	}
	defer remove()
	db, err := s.Database.Open()
	if err != nil {
		return err
	}
	defer db.Close()
	if o.init {
		if err := initialize(ctx, s, out); err != nil {
			return err
		}
	}
	sc := &scene{rows: account.Accounts{DB: db}, last: make(map[int64]uint64)}
	if err := errors.Join(sc.rows.Create(ctx, unchecked, "new"), sc.rows.Create(ctx, checked, "new")); err != nil {
		return err
	}
	text, _ := json.Marshal(s) // plain values
	for _, p := range []**child.Process{&sc.slow, &sc.quick} {
		if *p, _, err = child.Start(holderEnv, string(text), 1); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, (*p).Close()) }()
	}
	return sc.rounds(ctx, o.loop, out)
}

// initialize is what an operator does once, before the first fenced lock of a fleet.
func initialize(ctx context.Context, s setup, out io.Writer) error {
	client, err := s.client()
	if err != nil {
		return err
	}
	defer client.Close()
	start := time.Now()
	if err := client.InitFencing(ctx); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%d nodes, initialized in %.1f s; %s\n", len(s.Nodes), time.Since(start).Seconds(), s.Database.Driver)
	return err
}

// scene is two holders, and the rows that they write.
type scene struct {
	slow, quick *child.Process
	rows        account.Accounts
	last        map[int64]uint64 // the largest token of each row's lock
}

// The rows, one for each way to write.
const (
	unchecked int64 = 1
	checked   int64 = 2
)

// outcome is the fate of a stale write.
type outcome struct {
	slow, quick     uint64 // tokens
	refused, landed bool
}

// rounds plays and counts.
func (sc *scene) rounds(ctx context.Context, n int, out io.Writer) error {
	landed, refused := map[int64]int{}, 0
	for round := range n {
		for _, id := range []int64{unchecked, checked} {
			o, err := sc.play(ctx, round, id)
			if err != nil {
				return err
			}
			if o.landed {
				landed[id]++
			}
			if o.refused {
				refused++
			}
			if round == 0 && id == checked {
				fmt.Fprintf(out, "one round: %d holds and is stopped, %d writes, %[1]d continues and is refused: %[3]t\n", o.slow, o.quick, o.refused)
			}
		}
	}
	fmt.Fprintf(out, "without the check: %d of %d stale writes landed\n", landed[unchecked], n)
	fmt.Fprintf(out, "with the check:    %d of %d stale writes landed, %d refused\n", landed[checked], n, refused)
	fmt.Fprintf(out, "tokens:            %d, each larger than all before it for its lock\n", 4*n)
	if landed[checked] > 0 || refused < n {
		return errors.New("a stale write got through the check")
	}
	return nil
}

// play is one round: the slow holder has the lock, has checked the clock, and is stopped; the
// other acquires, which it can when the lock has expired, and writes; the slow one continues
// where it was.
func (sc *scene) play(ctx context.Context, round int, id int64) (o outcome, err error) {
	stale, fresh := fmt.Sprint("stale ", round), fmt.Sprint("fresh ", round)
	if o.slow, err = sc.acquire(sc.slow, order{id, stale, id == checked}); err != nil {
		return o, err
	}
	if err := sc.slow.Signal(syscall.SIGSTOP); err != nil {
		return o, err
	}
	o.quick, err = sc.acquire(sc.quick, order{id, fresh, id == checked})
	var answer string
	if err == nil {
		answer, err = sc.quick.Ask("write")
	}
	if err == nil && answer != written {
		err = fmt.Errorf("the holder answered %q", answer)
	}
	if err := errors.Join(err, sc.slow.Signal(syscall.SIGCONT)); err != nil {
		return o, err
	}
	if answer, err = sc.slow.Ask("write"); err != nil {
		return o, err
	}
	value, _, err := sc.rows.Read(ctx, id)
	o.refused, o.landed = answer == refused, value == stale
	if err == nil && !o.landed && value != fresh {
		err = fmt.Errorf("the row has %q", value)
	}
	return o, err
}

// acquire has a holder acquire, and returns its token, which must be the largest yet.
func (sc *scene) acquire(p *child.Process, o order) (fence uint64, err error) {
	text, _ := json.Marshal(o) // plain values
	answer, err := p.Ask(string(text))
	if err == nil {
		fence, err = strconv.ParseUint(answer, 10, 64)
	}
	if err == nil && fence <= sc.last[o.ID] {
		err = fmt.Errorf("the token %d came after %d", fence, sc.last[o.ID])
	}
	sc.last[o.ID] = fence
	return fence, err
}
