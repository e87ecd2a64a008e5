package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// order gives a master an order, and returns the lines of the reply. It speaks the protocol by hand: a harness for clients
// should depend on none of them. QUIT makes the server end the stream, so that no length has to be understood.
func order(ctx context.Context, addr, text string, limit time.Duration) ([]string, error) {
	c, err := connect(ctx, addr, limit)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if _, err := fmt.Fprintf(c, "%s\r\nQUIT\r\n", text); err != nil {
		return nil, err
	}
	reply, err := io.ReadAll(c)
	if err != nil {
		return nil, fmt.Errorf("no answer: %w", err)
	}
	if len(reply) > 0 && reply[0] == '-' {
		text, _, _ := strings.Cut(string(reply[1:]), "\r\n")
		return nil, errors.New(text)
	}
	return strings.Split(string(reply), "\r\n"), nil
}

// info asks a master about one section.
func info(ctx context.Context, addr, section string) (map[string]string, error) {
	lines, err := order(ctx, addr, "INFO "+section, greeting)
	fields := map[string]string{}
	for _, line := range lines {
		if name, value, ok := strings.Cut(line, ":"); ok {
			fields[name] = value
		}
	}
	return fields, err
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
