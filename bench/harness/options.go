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

	"github.com/redlock-go/redlock/internal/realredis"
)

// The suffixes mark the twin of a driver that uses only what every operating
// system has, and the one that uses scripts where servers have commands.
const (
	portableSuffix = "-portable"
	scriptedSuffix = "-scripted"
)

// servers are the kinds that -server knows.
var servers = []string{realredis.Usual: "usual", realredis.Valkey9: "valkey9", realredis.Redis8: "redis8"}

// Options are what the command line says.
type Options struct {
	Nodes       []string // masters that are there already
	Redis       bool     // else: start real ones, or embedded ones
	Server      realredis.Kind
	Masters     []int // how many
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
	Client      bool
	Apart       bool
	JSON        bool
	Report      string
	Suite       string
	Only        []string // sections of the suite
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
	var portable, scripted, embedded bool

	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.SetOutput(io.Discard) // the caller reports errors, in one line
	fs.Usage = func() {}
	listVar(fs, &o.Nodes, "nodes", "masters that are there already, `host:port,…`", func(s string) (string, error) { return s, nil })
	fs.BoolVar(&o.Redis, "redis", p.Real, "start real servers; redis-server or valkey-server must be on PATH")
	fs.Func("server", "start real servers of a `kind`: "+join(servers)+"; the last two must be named by "+realredis.EnvValkey9+" and "+realredis.EnvRedis8, func(s string) error {
		kind, err := oneOf(servers)(s)
		o.Server = realredis.Kind(max(slices.Index(servers, kind), 0))
		return err
	})
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
	fs.BoolVar(&scripted, "scripted", false, "run the twin of each driver that has one which leaves the servers' own compare-and-delete alone")
	fs.BoolVar(&o.Apart, "apart", false, "show acquire and release apart, and how long a PING takes; with -rtt always")
	fs.BoolVar(&o.JSON, "json", false, "print one JSON object per cell instead of a table")
	fs.StringVar(&o.CPUProfile, "cpuprofile", "", "write a CPU profile of the client to `file`")
	if p.Growth != nil {
		fs.BoolVar(&o.Growth, "growth", false, "measure what a client costs as there is more of everything: nodes, goroutines, bytes, cores, and -client")
		fs.BoolVar(&o.Client, "client", false, "measure clients that are idle, that hold many locks, and that are several")
	}
	if len(p.Suite.Sections) > 0 {
		fs.StringVar(&o.Suite, "suite", "", "measure everything, and write results.jsonl and summary.md to `directory`; -rounds 3 -d 1s -warmup 300ms unless given")
		listVar(fs, &o.Only, "only", "with -suite, a `list` of its sections: "+join(p.Suite.names()), oneOf(p.Suite.names()))
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
		o.twins(drivers, portableSuffix)
	}
	if scripted {
		o.twins(drivers, scriptedSuffix)
	}
	given := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if given["server"] {
		o.Redis, given["redis"] = true, true
	}
	if given["embedded"] && embedded && !given["redis"] || len(o.Nodes) > 0 {
		o.Redis = false
	}
	err := o.check(given, embedded)
	if o.Growth && err == nil {
		err = o.grow(given)
	}
	return o, err
}

// twins puts the twins with a suffix in the place of the drivers that have one.
func (o *Options) twins(drivers []string, suffix string) {
	for i, name := range o.Drivers {
		if slices.Contains(drivers, name+suffix) {
			o.Drivers[i] = name + suffix
		}
	}
	o.Drivers = unique(o.Drivers)
}

// check says what is wrong with options, of which some were given.
func (o Options) check(given map[string]bool, embedded bool) error {
	switch {
	case given["n"] && given["nodes"]:
		return errors.New("-n counts masters to start, -nodes names some that are there: give one of them")
	case given["nodes"] && (given["redis"] || given["embedded"]), given["redis"] && given["embedded"] && o.Redis && embedded:
		return errors.New("-nodes, -redis (or -server) and -embedded: give one of them")
	case given["portable"] && given["scripted"]:
		return errors.New("-portable and -scripted: give one of them")
	case o.Suite != "" && (o.Report != "" || o.CPUProfile != ""):
		return errors.New("-suite: without -report and -cpuprofile")
	case len(o.Only) > 0 && o.Suite == "":
		return errors.New("-only chooses sections of -suite")
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
