// Command network runs lock clients on hosts of their own, with a network between them that loses, delays, repeats and forges
// packets, and reports what they promised and did not keep. README.md describes it.
//
//	go run . -seed 11 -mix all     # a run of a minute
//	go run . -suite                # the runs of the page, in about an hour
//
// It needs Linux, root, and redis-server or valkey-server.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9/logging"

	"github.com/redlock-go/redlock/bench/network/checker"
	"github.com/redlock-go/redlock/bench/network/history"
	"github.com/redlock-go/redlock/bench/network/lab"
	"github.com/redlock-go/redlock/bench/network/nemesis"
	"github.com/redlock-go/redlock/bench/network/page"
	"github.com/redlock-go/redlock/bench/network/workload"
)

// errBroken means that a promise was broken, errNoLab that the machine cannot run a lab, and errStarved that it did not let this one
// run: what is seen then says nothing of the clients.
var (
	errBroken  = errors.New("promises were broken")
	errNoLab   = errors.New("no lab on this machine")
	errStarved = errors.New("no verdict, the machine did not let the lab run")
)

// exitNoLab is the exit status of errNoLab and errStarved, after sysexits.h.
const exitNoLab = 69

func main() {
	logging.Disable() // of the clients that the lab uses itself
	var err error
	if len(os.Args) == 3 && os.Args[1] == workload.Verb {
		err = workload.Run(os.Args[2])
	} else {
		err = command()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "network:", err)
		if errors.Is(err, errNoLab) || errors.Is(err, errStarved) {
			os.Exit(exitNoLab)
		}
		os.Exit(1)
	}
}

func command() error {
	var s history.Setup
	flag.Uint64Var(&s.Seed, "seed", 1, "of the faults and of what the workers ask for")
	flag.StringVar(&s.Mix, "mix", "all", "of faults: "+strings.Join(nemesis.Mixes(), ", ")+", or `kinds` separated by commas")
	flag.StringVar(&s.Library, "library", history.Ours, "`of`: "+strings.Join([]string{history.Ours, history.Redsync, history.ByHand, history.NoToken, history.NoValidity, history.NoElapsed, history.NoDrift, history.Half}, ", "))
	flag.DurationVar(&s.Faults, "d", 42*time.Second, "how long faults are injected")
	flag.DurationVar(&s.Calm, "calm", 8*time.Second, "how long it is calm behind them")
	flag.Float64Var(&s.Scale, "scale", 1, "the faults last so many times as long")
	flag.BoolVar(&s.Fenced, "fenced", false, "with fencing tokens, and a register that refuses stale ones")
	flag.BoolVar(&s.Groups, "groups", false, "a second group of five masters, which shares the keys")
	flag.BoolVar(&s.Change, "change", false, "the fifth master is replaced by a sixth meanwhile; with -groups the second group is added meanwhile")
	flag.BoolVar(&s.Portable, "portable", false, "Config.Portable")
	flag.BoolVar(&s.Serve, "serve", true, "with redlock serve and bare clients of it")
	flag.BoolVar(&s.Compared, "compared", false, "only what each library can do")
	out := flag.String("o", "", "a `folder` for the files of the runs (default: a new one, removed unless a promise is broken)")
	isSuite := flag.Bool("suite", false, "the runs of the page, into the folder of -o; again, it goes on, and several at once share them")
	runs := flag.Int("runs", 1000, "of the suite: at most so many now")
	check := flag.String("check", "", "only judge the files of a run again, in a `folder`")
	render := flag.String("render", "", "only print the page's tables of the runs in a `folder`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	switch {
	case *check != "":
		return judge(*check)
	case *render != "":
		return page.Render(os.Stdout, *render)
	}
	if err := lab.Missing(); err != nil {
		return fmt.Errorf("%w: %w", errNoLab, err)
	}
	tools, remove, err := tools(s.Serve || *isSuite)
	if err != nil {
		return err
	}
	defer remove()
	// The lab's processes go first: what waits for a processor is neither the network nor the client.
	// Linux has a priority for each thread, and new ones inherit it.
	threads, _ := os.ReadDir("/proc/self/task")
	for _, t := range threads {
		id, _ := strconv.Atoi(t.Name())
		_ = syscall.Setpriority(syscall.PRIO_PROCESS, id, -5)
	}
	if *isSuite {
		return suite(ctx, *out, *runs, tools)
	}
	return one(ctx, s, *out, tools)
}

// one runs a setup and judges it.
func one(ctx context.Context, s history.Setup, out string, tools lab.Tools) (err error) {
	s.Name = name(s)
	s.Serve = s.Serve && s.Library == history.Ours && !s.Change && !s.Compared
	s.Commit, s.Version = versions()
	dir := filepath.Join(out, s.Name)
	if out == "" {
		if dir, err = os.MkdirTemp("", "network-"); err != nil {
			return err
		}
		defer func() {
			if err == nil {
				_ = os.RemoveAll(dir)
			}
		}()
	} else if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	_ = os.RemoveAll(dir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := lab.Run(ctx, s, dir, tools); err != nil {
		return err
	}
	if err := judge(dir); err != nil {
		return fmt.Errorf("%w: the files are in %s", err, dir)
	}
	return nil
}

// judge checks the files of a run, and leaves the verdict beside them.
func judge(dir string) error {
	v, err := verdict(dir)
	if err != nil {
		return err
	}
	fmt.Print(v)
	if len(v.Violations) > 0 {
		err = errBroken
	}
	return errors.Join(err, v.Save(dir))
}

// verdict is what the checker says of the files of a run.
func verdict(dir string) (*checker.Verdict, error) {
	h, err := history.Read(dir)
	if err != nil {
		return nil, err
	}
	if s := checker.StoodStill(h); s > h.Stop.Sub(h.Start)/8 {
		return nil, fmt.Errorf("%w: it stood still for %v", errStarved, s.Round(time.Second))
	}
	return checker.Check(h), nil
}

// name names a run.
func name(s history.Setup) string {
	name := fmt.Sprintf("%s-%s-%d", s.Library, strings.ReplaceAll(s.Mix, ",", "+"), s.Seed)
	for _, x := range []struct {
		is   bool
		word string
	}{{s.Fenced, "fenced"}, {s.Groups, "groups"}, {s.Change, "change"}, {s.Portable, "portable"}, {s.Compared, "compared"}} {
		if x.is {
			name += "-" + x.word
		}
	}
	return name
}

// versions are the commit of this library and the version of the other.
func versions() (commit, other string) {
	if out, err := exec.Command("git", "describe", "--always", "--dirty").Output(); err == nil {
		commit = strings.TrimSpace(string(out))
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if strings.Contains(m.Path, "redsync") {
				other = m.Version
			}
		}
	}
	return commit, other
}

// tools are the programs of a run. The command is built, from the library of this checkout.
func tools(serve bool) (t lab.Tools, remove func(), err error) {
	if t.Client, err = os.Executable(); err != nil || !serve {
		return t, func() {}, err
	}
	dir, err := os.MkdirTemp("", "network-")
	if err != nil {
		return t, nil, err
	}
	t.Redlock = filepath.Join(dir, "redlock")
	if out, err := exec.Command("go", "build", "-o", t.Redlock, "github.com/redlock-go/redlock/internal/cmd/redlock").CombinedOutput(); err != nil {
		_ = os.RemoveAll(dir)
		return t, nil, fmt.Errorf("redlock serve: %w: %s", err, out)
	}
	return t, func() { _ = os.RemoveAll(dir) }, nil
}
