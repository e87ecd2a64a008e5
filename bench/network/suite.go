package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/redlock-go/redlock/bench/network/history"
	"github.com/redlock-go/redlock/bench/network/lab"
	"github.com/redlock-go/redlock/bench/network/page"
)

// setups are the runs of the page: ours with every workload, and then the same workloads, seeds and faults for each library.
func setups() (all []history.Setup) {
	run := func(mix string, seed uint64, change func(*history.Setup)) {
		s := history.Setup{Mix: mix, Seed: seed, Library: history.Ours, Serve: true, Faults: 42 * time.Second, Calm: 8 * time.Second, Scale: 1}
		if change != nil {
			change(&s)
		}
		all = append(all, s)
	}
	compared := func(mix string, seed uint64, scale float64) {
		for _, library := range []string{history.Ours, history.Redsync} {
			run(mix, seed, func(s *history.Setup) { s.Library, s.Compared, s.Serve, s.Scale = library, true, false, scale })
		}
	}
	fenced := func(s *history.Setup) { s.Fenced = true }
	alone := func(s *history.Setup) { s.Serve = false } // keys that are used once have a TTL of 20 s then
	for i, mix := range []string{"partition", "silence", "packets", "reset", "process", "all", "restart"} {
		compared(mix, 201+uint64(i), 1)
	}
	compared("kill", 261, .15)
	compared("kill", 263, .15)
	compared("cut,refuse,link,lost-replies,lost-requests", 251, 1.5)
	run("all", 11, nil)
	run("every", 81, fenced)
	run("partition", 21, alone)
	run("silence", 41, nil)
	run("packets", 31, alone)
	run("process", 51, fenced)
	run("reset", 61, alone)
	run("restart", 71, nil)
	run("all", 121, func(s *history.Setup) { s.Change, s.Serve = true, false })
	run("all", 111, func(s *history.Setup) { s.Portable, s.Serve = true, false })
	run("restart", 73, func(s *history.Setup) { s.Persistent, s.Serve = true, false })
	run("packets", 32, func(s *history.Setup) { s.NodeTimeout, s.Serve = 150*time.Millisecond, false })
	run("every", 82, fenced)
	run("partition", 22, nil)
	run("silence", 42, alone)
	run("every", 84, func(s *history.Setup) { s.Fenced, s.Persistent = true, true })
	run("cut,lost-replies,link,stop-master,stale,flap", 131, func(s *history.Setup) { s.Scale, s.Serve = 3, false })
	run("minority", 91, alone)
	run("minority", 92, nil)
	return all
}

// suite runs what is not there yet, and prints the tables of the page.
func suite(ctx context.Context, o options, tools lab.Tools) error {
	if o.out == "" {
		return errors.New("-suite needs a folder: -o")
	}
	all := setups()
	var k, n int
	if _, err := fmt.Sscanf(o.part, "%d/%d", &k, &n); err != nil || k < 1 || n < k {
		return fmt.Errorf("-part %q: k/n", o.part)
	}
	fmt.Fprintf(os.Stderr, "%d runs, a minute each\n", len(all))
	for i, s := range all {
		if _, err := os.Stat(filepath.Join(o.out, name(s), "verdict.json")); err == nil || i%n != k-1 {
			continue
		}
		if o.runs--; o.runs < 0 {
			return nil
		}
		fmt.Fprintf(os.Stderr, "%d of %d: %s\n", i+1, len(all), name(s))
		if err := one(ctx, s, o.out, tools); err != nil && !errors.Is(err, errBroken) {
			return err
		}
	}
	return page.Render(os.Stdout, o.out)
}
