package harness

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// info asks a master about one section. It speaks the protocol by hand: a harness
// for clients should depend on none of them.
func info(ctx context.Context, addr, section string) (map[string]string, error) {
	c, err := connect(ctx, addr, greeting)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	// QUIT makes the server end the stream, so that no length has to be
	// understood.
	if _, err := fmt.Fprintf(c, "*2\r\n$4\r\nINFO\r\n$%d\r\n%s\r\n*1\r\n$4\r\nQUIT\r\n", len(section), section); err != nil {
		return nil, err
	}
	fields := map[string]string{}
	lines := bufio.NewScanner(c)
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, "-") {
			return nil, errors.New(line[1:])
		}
		if name, value, ok := strings.Cut(line, ":"); ok {
			fields[name] = value
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("no answer: %w", err)
	}
	return fields, nil
}

// ownCommands are those that the harness sends in a window.
var ownCommands = []string{"info", "quit"}

// executed counts the commands that a node has executed, from its INFO commandstats: those in
// scripts are included, those of the harness are not.
func executed(fields map[string]string) (sum float64) {
	for name, value := range fields {
		name, is := strings.CutPrefix(name, "cmdstat_")
		calls, _, _ := strings.Cut(strings.TrimPrefix(value, "calls="), ",")
		if n, err := strconv.ParseFloat(calls, 64); is && err == nil && !slices.Contains(ownCommands, name) {
			sum += n
		}
	}
	return sum
}

// busy is the CPU time that a node has used, in µs, from its INFO cpu.
func busy(fields map[string]string) (sum float64) {
	for _, name := range []string{"used_cpu_user", "used_cpu_sys"} {
		if seconds, err := strconv.ParseFloat(fields[name], 64); err == nil {
			sum += 1e6 * seconds
		}
	}
	return sum
}

// commands and used read counters of all nodes. A node that does not answer has none.
func (s *site) commands(ctx context.Context) []float64 {
	return s.counters(ctx, "commandstats", executed)
}
func (s *site) used(ctx context.Context) []float64 { return s.counters(ctx, "cpu", busy) }

func (s *site) counters(ctx context.Context, section string, of func(map[string]string) float64) []float64 {
	all := make([]float64, len(s.addrs))
	var wg sync.WaitGroup
	for i, addr := range s.addrs {
		if !s.away[addr] {
			wg.Go(func() {
				if fields, err := info(ctx, addr, section); err == nil {
					all[i] = of(fields)
				}
			})
		}
	}
	wg.Wait()
	return all
}

// between is how much counters have grown between two readings. The counters of a server
// that has restarted begin at zero.
func between(from, to []float64) (sum float64) {
	for i, n := range to {
		if n >= from[i] {
			n -= from[i]
		}
		sum += n
	}
	return sum
}
