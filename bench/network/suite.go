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

// setups are the runs of the page: first the same workloads, seeds and faults for each library, then ours with every workload.
func setups() (all []history.Setup) {
	mixes := []string{"partition", "silence", "packets", "reset", "process", "all", "restart", "minority"}
	base := history.Setup{Faults: 42 * time.Second, Calm: 8 * time.Second, Scale: 1}
	compared := func(mix string, seed uint64, scale float64) {
		s := base
		s.Mix, s.Seed, s.Scale, s.Compared = mix, seed, scale, true
		for _, s.Library = range []string{history.Ours, history.Redsync} {
			all = append(all, s)
		}
	}
	for i, mix := range mixes {
		compared(mix, 201+uint64(i), 1)
	}
	compared("kill", 261, .15)
	compared("kill", 263, .15)
	compared("cut,refuse,link,lost-replies,lost-requests", 251, 1.5)
	base.Library = history.Ours
	for round := range uint64(4) {
		for i, mix := range append(mixes, "every", "flap") {
			s := base
			s.Mix, s.Seed = mix, 301+100*round+uint64(i)
			switch n := int(round) + i; { // without redlock serve keys that are used once have a TTL of 20 s
			case mix == "every" || n%4 == 1:
				s.Fenced, s.Serve = true, true
			case n%4 == 2:
				s.Serve = true
			case n%8 == 3:
				s.Change = true
			case n%8 == 7:
				s.Portable = true
			}
			all = append(all, s)
		}
	}
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
		if err := one(ctx, s, o.out, tools); err != nil && !errors.Is(err, errBroken) && !errors.Is(err, errStarved) {
			return err
		}
	}
	return page.Render(os.Stdout, o.out)
}
