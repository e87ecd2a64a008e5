// Command fencing shows what a fencing token is for. A holder of a lock is stopped
// (SIGSTOP) beyond the validity of its lock, another holder writes meanwhile, and the
// first goes on (SIGCONT) and writes too. Without a check of the token the stale write
// lands on top of the newer one; with it the database refuses the stale write.
//
//	go run .                         # SQLite, three Redis servers of its own
//	go run . -loop 100 -db postgres
//
// README.md says what to copy.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/redlock-go/redlock/bench/child"
	"github.com/redlock-go/redlock/bench/fencing/account"
	"github.com/redlock-go/redlock/bench/fencing/database"
	"github.com/redlock-go/redlock/internal/realredis"
)

// options are the flags.
type options struct {
	loop  int
	db    string
	n     int
	nodes string
	ttl   time.Duration
	init  bool
}

// maxTTL is the longest TTL of the fleet. It is short so that the first start, which
// waits for it, is quick.
const maxTTL = 2 * time.Second

// The rows, one for each way to write, and the lock of each.
const (
	unchecked = 1
	checked   = 2
)

func main() {
	child.Serve(holderEnv, hold)
	var o options
	flag.IntVar(&o.loop, "loop", 1, "`rounds`, each without the check and with it")
	flag.StringVar(&o.db, "db", "sqlite", `"sqlite", "postgres" (starts a server), or a postgres:// URL`)
	flag.IntVar(&o.n, "n", 3, "Redis or Valkey servers to start")
	flag.StringVar(&o.nodes, "nodes", "", "`host:port,…` of servers that run already")
	flag.BoolVar(&o.init, "init", false, "with -nodes: it is their first start as a fenced fleet")
	flag.DurationVar(&o.ttl, "ttl", 300*time.Millisecond, "time to live of a lock; about what a round takes")
	flag.Parse()
	if err := run(context.Background(), o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "fencing:", err)
		os.Exit(1)
	}
}

// run starts what is needed, plays the rounds, and reports. It returns an error if a
// stale write got through the check.
func run(ctx context.Context, o options, out io.Writer) error {
	s := setup{Nodes: strings.Split(o.nodes, ","), TTL: o.ttl, MaxTTL: maxTTL}
	if o.nodes == "" {
		fleet, err := realredis.Launch(o.n)
		if err != nil {
			return err
		}
		defer fleet.Close()
		s.Nodes, o.init = fleet.Addrs(), true
	}
	d, stop, err := database.Start(o.db)
	if err != nil {
		return err
	}
	defer stop()
	s.Database = d
	db, err := d.Open()
	if err != nil {
		return err
	}
	defer db.Close()
	rows := account.Accounts{DB: db}
	for _, id := range []int64{unchecked, checked} {
		if err := rows.Create(ctx, id, "new"); err != nil {
			return err
		}
	}
	if o.init {
		if err := initialize(ctx, s, out); err != nil {
			return err
		}
	}
	sc, err := startScene(s, rows)
	if err != nil {
		return err
	}
	return errors.Join(rounds(ctx, sc, o.loop, out), sc.close())
}

// initialize is what an operator does once, before the first fenced lock of a fleet.
func initialize(ctx context.Context, s setup, out io.Writer) error {
	client, err := s.client()
	if err != nil {
		return err
	}
	defer client.Close()
	start := time.Now()
	if err := client.InitFencing(ctx, 0); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%d nodes, initialized in %.1f s; %s\n", len(s.Nodes), time.Since(start).Seconds(), s.Database.Driver)
	return err
}

// rounds plays and counts.
func rounds(ctx context.Context, sc *scene, n int, out io.Writer) error {
	var landedBlindly, landed, refused int
	for round := range n {
		blind, err := sc.play(ctx, round, unchecked, false)
		if err != nil {
			return err
		}
		fenced, err := sc.play(ctx, round, checked, true)
		if err != nil {
			return err
		}
		if blind.Landed {
			landedBlindly++
		}
		if fenced.Landed {
			landed++
		}
		if fenced.Refused {
			refused++
		}
		if round == 0 {
			fmt.Fprintf(out, "one round: %d holds and is stopped, %d writes, %[1]d goes on and is refused: %[3]t\n", fenced.Slow, fenced.Quick, fenced.Refused)
		}
	}
	fmt.Fprintf(out, "without the check: %d of %d stale writes landed\n", landedBlindly, n)
	fmt.Fprintf(out, "with the check:    %d of %d stale writes landed, %d refused\n", landed, n, refused)
	fmt.Fprintf(out, "tokens:            %d, each larger than all before it for its lock\n", 4*n)
	if landed > 0 || refused < n {
		return errors.New("a stale write got through the check")
	}
	return nil
}
