package crowd

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redlock-go/redlock/bench/child"
	"github.com/redlock-go/redlock/bench/place"
	"github.com/redlock-go/redlock/internal/test/realredis"
)

// Main is a command that measures these libraries. Each argument is a crowd: processes, callers in each, what they want,
// and for how long they have it (from half of that on). They come again at once.
//
//	2x64:read:20ms    a shared lock
//	1x8:write:1ms     an exclusive one
//	1x1:poll:1ms      an exclusive one, by tries after pauses of 50 to 250 ms
//	1x1:crash:1s      a shared lock that is never released, once, with a TTL of so long
//
// With a number of keys behind it (1x64:read:0s:64) the callers have different ones. Crowds that are divided by a "/" are
// measured one after another, in each round.
func Main(libraries map[string]Open) {
	child.Serve(childEnv, func(text string) error { return serve(libraries, text) })
	names := slices.Sorted(maps.Keys(libraries))
	nodes := flag.String("nodes", "", "host:port of running masters; else it starts redis-server or valkey-server")
	n := flag.Int("n", 5, "masters to start")
	chosen := flag.String("library", strings.Join(names, ","), "libraries")
	d := flag.Duration("d", 10*time.Second, "how long crowds are at work in a round")
	ttl := flag.Duration("ttl", 20*time.Second, "of all locks but those of crash")
	rounds := flag.Int("rounds", 1, "how often; libraries take turns")
	together := flag.Bool("together", false, "use all processors, and not a half of them")
	flag.Parse()
	if err := place.Choose(*together); err != nil {
		log.Print(err)
	}
	fmt.Println(place.Describe(*nodes != ""))
	m := measurement{libraries: libraries, chosen: strings.Split(*chosen, ","), order: order{For: *d, TTL: *ttl}, rounds: *rounds}
	for crowds := range strings.SplitSeq(strings.Join(flag.Args(), " "), "/") {
		m.scenes = append(m.scenes, strings.Fields(crowds))
	}
	if err := m.run(*nodes, *n); err != nil {
		log.Fatal(err)
	}
}

// measurement is what is measured.
type measurement struct {
	libraries map[string]Open
	chosen    []string
	scenes    [][]string // each has crowds that are at work together
	rounds    int
	order     order
}

func (m *measurement) run(running string, n int) error {
	for _, name := range m.chosen {
		if m.libraries[name] == nil {
			return fmt.Errorf("no library %q", name)
		}
	}
	m.order.Nodes = strings.Split(running, ",")
	if running == "" {
		fleet, err := realredis.Launch(n, realredis.Options{Start: place.Serve})
		if err != nil {
			return err
		}
		defer fleet.Close()
		m.order.Nodes = fleet.Addrs()
	}
	results := make([]map[string][][]figures, len(m.scenes)) // by library and round
	for round := range m.rounds {
		for scene, crowds := range m.scenes {
			if round == 0 {
				results[scene] = map[string][][]figures{}
			}
			for i := range m.chosen {
				o := m.order
				o.Library = m.chosen[(round+i)%len(m.chosen)]
				o.Key = fmt.Sprint("crowd-", os.Getpid(), "-", round, "-", scene, "-", o.Library, "-")
				f, err := once(o, crowds)
				if err != nil {
					return fmt.Errorf("%s: %w", o.Library, err)
				}
				results[scene][o.Library] = append(results[scene][o.Library], f)
			}
		}
	}
	for scene, crowds := range m.scenes {
		for _, name := range m.chosen {
			fmt.Printf("%s: %s\n", name, strings.Join(crowds, " "))
			for i, crowd := range crowds {
				all := make([]figures, m.rounds)
				for round := range all {
					all[round] = results[scene][name][round][i]
				}
				fmt.Printf("  %-20s %v\n", crowd, middle(all))
			}
		}
	}
	return nil
}

// once has all crowds at work for a round.
func once(o order, crowds []string) ([]figures, error) {
	var done sync.WaitGroup
	of := make([][]figures, len(crowds)) // its processes
	errs := make([][]error, len(crowds))
	begin := make(chan struct{})
	defer done.Wait()
	var started []*child.Process
	defer func() {
		for _, p := range started {
			_ = p.Close()
		}
	}()
	for i, text := range crowds {
		c, err := parse(text)
		if err != nil {
			return nil, err
		}
		o.Crowd = text
		task, err := json.Marshal(o)
		if err != nil {
			return nil, err
		}
		of[i], errs[i] = make([]figures, c.processes), make([]error, c.processes)
		for j := range c.processes {
			p, _, err := child.Start(childEnv, string(task), 1)
			if err != nil {
				return nil, err
			}
			started = append(started, p)
			done.Go(func() {
				<-begin
				answer, err := p.Ask("begin")
				errs[i][j] = errors.Join(err, json.Unmarshal([]byte(answer), &of[i][j]))
			})
		}
	}
	close(begin)
	done.Wait()
	all := make([]figures, len(crowds))
	for i := range crowds {
		all[i] = sum(of[i])
		if err := errors.Join(errs[i]...); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// sum is the figures of a crowd: of its processes the slowest's waits.
func sum(of []figures) (all figures) {
	for _, f := range of {
		all.Grants += f.Grants
		all.Rate += f.Rate
		all.P50, all.P99, all.Most = max(all.P50, f.P50), max(all.P99, f.P99), max(all.Most, f.Most)
		if all.Failed == "" {
			all.Failed = f.Failed
		}
	}
	return all
}

// middle is the medians over the rounds; of the longest waits the longest.
func middle(rounds []figures) (all figures) {
	all = sum(rounds)
	median := func(of func(f figures) time.Duration) time.Duration {
		slices.SortFunc(rounds, func(a, b figures) int { return int(of(a) - of(b)) })
		return of(rounds[len(rounds)/2])
	}
	all.P50 = median(func(f figures) time.Duration { return f.P50 })
	all.P99 = median(func(f figures) time.Duration { return f.P99 })
	all.Rate = float64(median(func(f figures) time.Duration { return time.Duration(f.Rate * 1000) })) / 1000
	return all
}

// String is a line of the output.
func (f figures) String() string {
	text := fmt.Sprintf("%8.0f/s  waits: p50 %v, p99 %v, longest %v", f.Rate, round(f.P50), round(f.P99), round(f.Most))
	if f.Grants == 0 {
		text = fmt.Sprintf("never: longest wait %v", round(f.Most))
	}
	if f.Failed != "" {
		text += "  failed: " + f.Failed
	}
	return text
}

func round(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }
