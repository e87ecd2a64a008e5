package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
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

// suite runs what is not there yet and no other process runs, and prints the tables of the page.
func suite(ctx context.Context, out string, runs int, tools lab.Tools) error {
	if out == "" {
		return errors.New("-suite needs a folder: -o")
	}
	all := setups()
	for i, s := range all {
		claim, err := claim(out, name(s))
		if err != nil {
			return err
		} else if claim == nil {
			continue
		}
		runs--
		if runs < 0 {
			return nil
		}
		fmt.Fprintf(os.Stderr, "%d of %d: %s\n", i+1, len(all), name(s))
		err = one(ctx, s, out, tools)
		_ = claim.Close()
		if err != nil && !errors.Is(err, errBroken) && !errors.Is(err, errStarved) {
			return err
		}
	}
	return page.Render(os.Stdout, out)
}

// claim has a run for this process until it is closed, or the process ends. It is nil if another has the run, or it is done.
func claim(out, name string) (*os.File, error) {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return nil, err
	}
	f, err := os.Create(filepath.Join(out, "."+name))
	if err != nil {
		return nil, err
	}
	isTaken := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil
	if _, err := os.Stat(filepath.Join(out, name, "verdict.json")); isTaken || err == nil {
		return nil, f.Close()
	}
	return f, nil
}
