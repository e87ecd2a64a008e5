package harness

import (
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
	Nodes       []string // real masters; none means embedded ones
	Masters     int      // how many embedded ones
	Concurrency []int
	Timing      Timing
	Rounds      int
	Scenarios   []Scenario
	Drivers     []string
	TTL         time.Duration
	KeyLen      int
	JSON        bool
	CPUProfile  string
}

// ParseOptions reads the command line, less the program's name. drivers are
// the names there are to choose from, chosen those that run by default. Help
// goes to out, with [flag.ErrHelp] as the error.
func ParseOptions(args, drivers, chosen []string, out io.Writer) (Options, error) {
	o := Options{Concurrency: []int{1, 8, 64, 512}, Scenarios: slices.Clone(Scenarios), Drivers: slices.Clone(chosen)}
	var portable bool

	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.SetOutput(io.Discard) // the caller reports errors, in one line
	fs.Usage = func() {}
	fs.Func("nodes", "real masters, `host:port,…` (default: embedded ones)", func(s string) (err error) {
		o.Nodes, err = list(s, func(s string) (string, error) { return s, nil })
		return err
	})
	fs.IntVar(&o.Masters, "n", 5, "number of embedded masters")
	fs.Func("c", "concurrency, a `list` (default 1,8,64,512)", func(s string) (err error) {
		o.Concurrency, err = list(s, concurrency)
		return err
	})
	fs.DurationVar(&o.Timing.Window, "d", 3*time.Second, "how long each cell is counted")
	fs.DurationVar(&o.Timing.Warmup, "warmup", 500*time.Millisecond, "how long each cell runs before it is counted")
	fs.IntVar(&o.Rounds, "rounds", 1, "rounds, the drivers taking turns; figures are medians")
	fs.Func("scenario", "a `list` of "+join(Scenarios)+" (default all)", func(s string) (err error) {
		o.Scenarios, err = list(s, oneOf(Scenarios))
		return err
	})
	fs.Func("driver", "a `list` of "+join(drivers)+" (default "+join(chosen)+")", func(s string) (err error) {
		o.Drivers, err = list(s, oneOf(drivers))
		return err
	})
	fs.DurationVar(&o.TTL, "ttl", 10*time.Second, "time to live asked for each lock")
	fs.IntVar(&o.KeyLen, "keylen", 24, "length of a key in bytes")
	fs.BoolVar(&portable, "portable", false, "run the portable twin of each driver that has one")
	fs.BoolVar(&o.JSON, "json", false, "print one JSON object per cell instead of a table")
	fs.StringVar(&o.CPUProfile, "cpuprofile", "", "write a CPU profile of the client to `file`")

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
	switch {
	case given["n"] && given["nodes"]:
		return Options{}, fmt.Errorf("-n counts embedded masters, -nodes names real ones: give one of them")
	case o.Masters < 1:
		return Options{}, fmt.Errorf("-n %d: at least 1", o.Masters)
	case o.Timing.Window <= 0:
		return Options{}, fmt.Errorf("-d %v: must be positive", o.Timing.Window)
	case o.Timing.Warmup < 0:
		return Options{}, fmt.Errorf("-warmup %v: must not be negative", o.Timing.Warmup)
	case o.Rounds < 1:
		return Options{}, fmt.Errorf("-rounds %d: at least 1", o.Rounds)
	case o.TTL < time.Millisecond:
		return Options{}, fmt.Errorf("-ttl %v: at least 1ms", o.TTL)
	case o.KeyLen < MinKeyLen:
		return Options{}, fmt.Errorf("-keylen %d: at least %d", o.KeyLen, MinKeyLen)
	}
	return o, nil
}

// concurrency reads one number of -c.
func concurrency(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > MaxConcurrency {
		return 0, fmt.Errorf("%q is not a number from 1 to %d", s, MaxConcurrency)
	}
	return n, nil
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

// join lists names as a user would type them.
func join[T ~string](names []T) string {
	parts := make([]string, len(names))
	for i, name := range names {
		parts[i] = string(name)
	}
	return strings.Join(parts, ",")
}
