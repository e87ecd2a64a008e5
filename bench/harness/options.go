package harness

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// portableSuffix marks the twin of a driver that uses only what every
// operating system has.
const portableSuffix = "-portable"

// Options are what the command line says.
type Options struct {
	Nodes       []string // masters that are there already
	Redis       bool     // else: start real ones, or embedded ones
	Masters     []int    // how many
	Concurrency []int
	Timing      Timing
	Rounds      int
	Scenarios   []Scenario
	Drivers     []string
	TTL         time.Duration
	KeyLen      []int
	RTT         []time.Duration // what is added to the network's own
	Jitter      time.Duration
	Faults      []Fault
	Procs       []int // GOMAXPROCS; none to leave it alone
	Growth      bool
	JSON        bool
	Report      string
	CPUProfile  string
}

// ParseOptions reads the command line of a program, less its name. Help goes to
// out, with [flag.ErrHelp] as the error.
func ParseOptions(args []string, p Program, out io.Writer) (Options, error) {
	drivers := make([]string, len(p.Drivers))
	for i, d := range p.Drivers {
		drivers[i] = d.Name()
	}
	o := Options{
		Redis:       p.Real,
		Masters:     []int{5},
		Concurrency: []int{1, 8, 64, 512},
		Scenarios:   slices.Clone(Scenarios),
		Drivers:     slices.Clone(p.Chosen),
		KeyLen:      []int{DefaultKeyLen},
	}
	var portable, embedded bool

	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.SetOutput(io.Discard) // the caller reports errors, in one line
	fs.Usage = func() {}
	listVar(fs, &o.Nodes, "nodes", "masters that are there already, `host:port,…`", func(s string) (string, error) { return s, nil })
	fs.BoolVar(&o.Redis, "redis", p.Real, "start real servers; redis-server or valkey-server must be on PATH")
	fs.BoolVar(&embedded, "embedded", !p.Real, "embedded masters, in a process of their own")
	listVar(fs, &o.Masters, "n", "number of masters, a `list` (default 5)", number(1, MaxMasters))
	listVar(fs, &o.Concurrency, "c", "concurrency, a `list` (default 1,8,64,512)", number(1, MaxConcurrency))
	fs.DurationVar(&o.Timing.Window, "d", 3*time.Second, "how long each cell is counted")
	fs.DurationVar(&o.Timing.Warmup, "warmup", 500*time.Millisecond, "how long each cell runs before it is counted")
	fs.IntVar(&o.Rounds, "rounds", 1, "rounds, the drivers taking turns; figures are medians")
	listVar(fs, &o.Scenarios, "scenario", "a `list` of "+join(Scenarios)+" (default all)", oneOf(Scenarios))
	listVar(fs, &o.Drivers, "driver", "a `list` of "+join(drivers)+" (default "+join(p.Chosen)+")", oneOf(drivers))
	fs.DurationVar(&o.TTL, "ttl", 10*time.Second, "time to live asked for each lock")
	listVar(fs, &o.KeyLen, "keylen", "length of a key in bytes, a `list` (default 24)", number(MinKeyLen, MaxKeyLen))
	listVar(fs, &o.RTT, "rtt", "round trip added to that of the network, a `list` of durations", roundTrip)
	fs.DurationVar(&o.Jitter, "jitter", 0, "with -rtt or -fault, how much a round trip may be longer, by chance and for each node apart")
	listVar(fs, &o.Faults, "fault", "what is wrong with the first node, a `list` of "+join(Faults), oneOf(Faults))
	listVar(fs, &o.Procs, "procs", "GOMAXPROCS, a `list` (default: as it is)", number(1, 1024))
	fs.BoolVar(&portable, "portable", false, "run the portable twin of each driver that has one")
	fs.BoolVar(&o.JSON, "json", false, "print one JSON object per cell instead of a table")
	fs.StringVar(&o.CPUProfile, "cpuprofile", "", "write a CPU profile of the client to `file`")
	if p.Growth != nil {
		fs.BoolVar(&o.Growth, "growth", false, "measure what a client costs as there is more of everything: nodes, goroutines, bytes, cores, locks held, clients")
	}
	if p.Report != nil {
		fs.StringVar(&o.Report, "report", "", "write a page with plots to `directory`")
	}

	if err := fs.Parse(args); err != nil {
		if err == flag.ErrHelp {
			fs.SetOutput(out)
			fmt.Fprintln(out, "Measures Redlock clients side by side. Flags:")
			fs.PrintDefaults()
		}
		return Options{}, err
	}
	if fs.NArg() > 0 {
		return Options{}, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	if portable {
		for i, name := range o.Drivers {
			if slices.Contains(drivers, name+portableSuffix) {
				o.Drivers[i] = name + portableSuffix
			}
		}
		o.Drivers = unique(o.Drivers)
	}
	given := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if given["embedded"] && embedded && !given["redis"] || len(o.Nodes) > 0 {
		o.Redis = false
	}
	err := o.check(given, embedded)
	if o.Growth && err == nil {
		err = o.grow(given)
	}
	return o, err
}

// check says what is wrong with options, of which some were given.
func (o Options) check(given map[string]bool, embedded bool) error {
	switch {
	case given["n"] && given["nodes"]:
		return errors.New("-n counts masters to start, -nodes names some that are there: give one of them")
	case given["nodes"] && (given["redis"] || given["embedded"]), given["redis"] && given["embedded"] && o.Redis && embedded:
		return errors.New("-nodes, -redis and -embedded: give one of them")
	case o.Timing.Window <= 0:
		return fmt.Errorf("-d %v: must be positive", o.Timing.Window)
	case o.Timing.Warmup < 0:
		return fmt.Errorf("-warmup %v: must not be negative", o.Timing.Warmup)
	case o.Rounds < 1:
		return fmt.Errorf("-rounds %d: at least 1", o.Rounds)
	case o.TTL < time.Millisecond:
		return fmt.Errorf("-ttl %v: at least 1ms", o.TTL)
	case o.Jitter < 0:
		return fmt.Errorf("-jitter %v: must not be negative", o.Jitter)
	}
	return nil
}

// listVar defines a flag that is a list.
func listVar[T comparable](fs *flag.FlagSet, all *[]T, name, usage string, read func(string) (T, error)) {
	fs.Func(name, usage, func(s string) (err error) {
		*all, err = list(s, read)
		return err
	})
}

// number reads a number from low to high.
func number(low, high int) func(string) (int, error) {
	return func(s string) (int, error) {
		n, err := strconv.Atoi(s)
		if err != nil || n < low || n > high {
			return 0, fmt.Errorf("%q is not a number from %d to %d", s, low, high)
		}
		return n, nil
	}
}

// roundTrip reads one duration of -rtt.
func roundTrip(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err == nil && d < 0 {
		err = fmt.Errorf("%q is negative", s)
	}
	return d, err
}

// oneOf reads one of the given names.
func oneOf[T ~string](names []T) func(string) (T, error) {
	return func(s string) (T, error) {
		if !slices.Contains(names, T(s)) {
			return "", fmt.Errorf("%q is none of %s", s, join(names))
		}
		return T(s), nil
	}
}

// list reads the parts of s, which commas separate. An item given twice counts
// once.
func list[T comparable](s string, read func(string) (T, error)) ([]T, error) {
	var all []T
	for part := range strings.SplitSeq(s, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			return nil, fmt.Errorf("an item of the list is empty")
		}
		item, err := read(part)
		if err != nil {
			return nil, err
		}
		all = append(all, item)
	}
	return unique(all), nil
}

// unique drops what is there already, and keeps the order.
func unique[T comparable](all []T) []T {
	var once []T
	for _, item := range all {
		if !slices.Contains(once, item) {
			once = append(once, item)
		}
	}
	return once
}

// join lists items as a user would type them.
func join[T any](items []T) string {
	parts := make([]string, len(items))
	for i, item := range items {
		parts[i] = fmt.Sprint(item)
	}
	return strings.Join(parts, ",")
}
