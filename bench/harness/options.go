package harness

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redlock-go/redlock/bench/result"
	"github.com/redlock-go/redlock/internal/test/realredis"
)

// embedded is the kind of server that needs none installed.
const embedded = "embedded"

// embeddedKind comes after the real ones.
const embeddedKind = 3

// servers are the kinds that -server knows, the real ones in their own order.
var servers = []string{realredis.Usual: "redis", realredis.Valkey9: "valkey9", realredis.Redis8: "redis8", embeddedKind: embedded}

// maxRate is the most pairs a second that are asked for.
const maxRate = 10_000_000

// all chooses every section of a suite.
const all = "all"

// ttl is the time to live asked for each lock unless another is given; the peers'
// timeouts follow this one.
const ttl = 10 * time.Second

// Options are the settings of the command line.
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
	KeyLen      []int
	RTT         []time.Duration // what is added to the network's own
	Jitter      time.Duration
	Faults      []result.Fault
	Procs       []int // GOMAXPROCS; 0 is as it is
	TTL         time.Duration
	Hold        []time.Duration
	Rate        []int // of uncontended cells
	Processes   []int // of contended cells, as what follows
	Keys        []int
	Once        bool
	Suite       []string // sections
	Against     string   // a commit
	Notice      float64  // a loss against it of so many per cent
	Render      []string // files, in place of measuring
	Together    bool     // servers and clients share the processors
	Out         string   // directory
	CPUProfile  string   // file
	JSON        bool

	own    *side // this program, which measures each turn in a process of its own; nil: in this process
	client bool  // measure what makes sense for one client at a time, and no cell
}

// ParseOptions reads the command line of a program, less its name. Help goes to
// out, with [flag.ErrHelp] as the error.
func ParseOptions(args []string, p Program, out io.Writer) (Options, error) {
	o := Options{Rounds: 1, TTL: ttl, Timing: Timing{Window: 3 * time.Second, Warmup: 500 * time.Millisecond}}
	names := p.names()
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.SetOutput(io.Discard) // the caller reports errors, in one line
	fs.Usage = func() {}

	kinds, server := servers, embedded
	if p.Real {
		kinds, server = servers[:embeddedKind], servers[realredis.Usual]
	}
	var redis bool
	listVar(fs, &o.Nodes, "nodes", "", "masters that are there already, `host:port,…`", address)
	fs.Func("server", "masters to start, of a `kind`: "+join(kinds)+"; valkey9 and redis8 must be named by "+
		realredis.EnvValkey9+" and "+realredis.EnvRedis8+" (default "+server+")", single(&server, oneOf(kinds)))
	fs.BoolVar(&redis, "redis", false, "the same as -server redis; redis-server or valkey-server must be on PATH")
	listVar(fs, &o.Masters, "n", "5", "number of masters, a `list`", number(1, MaxMasters))
	listVar(fs, &o.Concurrency, "c", "1,8,64,512", "concurrency, a `list`", number(1, MaxConcurrency))
	fs.Func("d", "`duration` for which each cell is counted (default 3s)", single(&o.Timing.Window, duration(time.Nanosecond)))
	fs.Func("warmup", "`duration` for which each cell runs before it is counted (default 500ms)", single(&o.Timing.Warmup, duration(0)))
	fs.Func("rounds", "`number` of rounds, the drivers taking turns; figures are medians (default 1)", single(&o.Rounds, number(1, 1000)))
	listVar(fs, &o.Scenarios, "scenario", join(Scenarios), "a `list` of "+join(Scenarios), oneOf(Scenarios))
	listVar(fs, &o.Drivers, "driver", join(p.Chosen), "a `list` of "+join(names), oneOf(names))
	listVar(fs, &o.KeyLen, "keylen", strconv.Itoa(DefaultKeyLen), "length of a key in bytes, a `list`", number(MinKeyLen, MaxKeyLen))
	listVar(fs, &o.RTT, "rtt", "0s", "round trip added to that of the network, a `list` of durations", duration(0))
	fs.Func("jitter", "`duration` by which, with -rtt or -fault, a round trip may be longer, by chance and for each node apart", single(&o.Jitter, duration(0)))
	listVar(fs, &o.Faults, "fault", string(result.NoFault), "what is wrong with the first node, or is done to clients, a `list` of "+join(faults), oneOf(faults))
	listVar(fs, &o.Procs, "gomaxprocs", "0", "GOMAXPROCS, a `list`; 0 leaves it as it is", number(0, 1024))
	fs.Func("ttl", "`duration` asked for each lock (default 10s)", single(&o.TTL, duration(10*time.Millisecond)))
	listVar(fs, &o.Processes, "procs", "1", "contended: processes, each with -c goroutines, a `list`", number(1, maxProcesses))
	listVar(fs, &o.Hold, "hold", "0s", "work under the lock, a `list` of durations", duration(0))
	listVar(fs, &o.Rate, "rate", "0", "uncontended: pairs that are begun in a second, by chance, a `list`; 0 is each worker's next at once", number(0, maxRate))
	listVar(fs, &o.Keys, "keys", "1", "contended: keys that all choose from by zipf(1.1), a `list`", number(1, maxShared))
	fs.BoolVar(&o.Once, "once", false, "contended: one turn for each goroutine; -d bounds it")
	if len(p.Suite.Sections) > 0 {
		sections := append([]string{all}, p.Suite.names()...)
		listVar(fs, &o.Suite, "suite", "", "go through sections, a `list` of "+join(sections)+"; -rounds 3 -d 1s -warmup 300ms unless given", oneOf(sections))
	}
	fs.BoolVar(&o.Together, "together", false, "have servers and clients share all processors; else, on Linux, each have a half of them")
	if p.Source != "" {
		fs.StringVar(&o.Against, "against", "", "build this `commit` and the source tree, have both take turns, and show the ratios; "+strings.Join(againstDefaults, " ")+" unless given")
		fs.Float64Var(&o.Notice, "notice", 5, "-against: go on until each figure is certainly worse or certainly not worse by so many per `cent`; fail where one is worse")
	}
	fs.StringVar(&o.Out, "o", "", "write results.jsonl and README.md to `directory`")
	fs.StringVar(&o.CPUProfile, "cpuprofile", "", "write a CPU profile of the clients, for go tool pprof, to `file`")
	fs.BoolVar(&o.JSON, "json", false, "print results as JSON, one a line, in place of tables")
	listVar(fs, &o.Render, "render", "", "measure nothing, and show the results in `files`; of several files, side by side", item)

	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fs.SetOutput(out)
			fmt.Fprintln(out, "Measures Redlock clients side by side. Flags:")
			fs.PrintDefaults()
		}
		return Options{}, err
	}
	if fs.NArg() > 0 {
		return Options{}, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	given := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for _, pair := range [][2]string{{"n", "nodes"}, {"nodes", "server"}, {"nodes", "redis"},
		{"suite", "render"}, {"render", "json"}, {"against", "suite"}, {"against", "render"}} {
		if given[pair[0]] && given[pair[1]] {
			return Options{}, fmt.Errorf("-%s and -%s: give one of them", pair[0], pair[1])
		}
	}
	switch {
	case redis && given["server"] && server == embedded:
		return Options{}, errors.New("-redis and -server embedded: give one of them")
	case redis && !given["server"]:
		server = servers[realredis.Usual]
	}
	o.Redis = server != embedded && len(o.Nodes) == 0
	if o.Redis {
		o.Server = realredis.Kind(slices.Index(servers, server))
	}
	return o, nil
}

// single makes a flag of a reader of one value.
func single[T any](value *T, read func(string) (T, error)) func(string) error {
	return func(text string) (err error) {
		*value, err = read(text)
		return err
	}
}

// listVar defines a flag that is a list, with a default.
func listVar[T any](fs *flag.FlagSet, all *[]T, name, usual, usage string, read func(string) (T, error)) {
	set := single(all, list(read))
	if usual != "" {
		_ = set(usual)
		usage += " (default " + usual + ")"
	}
	fs.Func(name, usage, set)
}

// list reads values with commas between.
func list[T any](read func(string) (T, error)) func(string) ([]T, error) {
	return func(s string) (all []T, err error) {
		seen := map[string]bool{}
		for part := range strings.SplitSeq(s, ",") {
			part = strings.TrimSpace(part)
			item, err := read(part)
			switch {
			case part == "":
				return nil, errors.New("an item of the list is empty")
			case err != nil:
				return nil, err
			case seen[part]:
				return nil, fmt.Errorf("%q is there twice", part)
			}
			seen[part] = true
			all = append(all, item)
		}
		return all, nil
	}
}

// item takes anything.
func item(s string) (string, error) { return s, nil }

// address reads host:port.
func address(s string) (string, error) {
	_, _, err := net.SplitHostPort(s)
	return s, err
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

// duration reads one of at least so much.
func duration(least time.Duration) func(string) (time.Duration, error) {
	return func(s string) (time.Duration, error) {
		d, err := time.ParseDuration(s)
		if err == nil && d < least {
			err = fmt.Errorf("%q is less than %v", s, least)
		}
		return d, err
	}
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

// join lists items as a user would type them.
func join[T any](items []T) string {
	parts := make([]string, len(items))
	for i, item := range items {
		parts[i] = fmt.Sprint(item)
	}
	return strings.Join(parts, ",")
}
