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
	"time"
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
var ownCommands = []string{"info", "quit", "monitor"}

// calls are how often each command was called.
type calls map[string]float64

// commandCalls reads what INFO commandstats says. Subcommands count for their command.
// Those of the harness are left out.
func commandCalls(fields map[string]string) calls {
	all := calls{}
	for name, value := range fields {
		name, is := strings.CutPrefix(name, "cmdstat_")
		name, _, _ = strings.Cut(name, "|")
		value, _, _ = strings.Cut(strings.TrimPrefix(value, "calls="), ",")
		if n, err := strconv.ParseFloat(value, 64); is && err == nil && !slices.Contains(ownCommands, name) {
			all[name] += n
		}
	}
	return all
}

// onEach does something with every node that answered at the beginning, at the same
// time, and waits until all is done.
func (s *site) onEach(do func(i int, addr string)) {
	var wg sync.WaitGroup
	for i, addr := range s.addrs {
		if !s.away[addr] {
			wg.Add(1)
			go func() {
				defer wg.Done()
				do(i, addr)
			}()
		}
	}
	wg.Wait()
}

// calls reads the counters of all nodes. One that stands still has none.
func (s *site) calls(ctx context.Context) []calls {
	all := make([]calls, len(s.addrs))
	s.onEach(func(i int, addr string) {
		if fields, err := info(ctx, addr, "commandstats"); err == nil {
			all[i] = commandCalls(fields)
		}
	})
	return all
}

// asked is how many commands clients have sent between two readings, given the
// share of each that clients send. Servers count what scripts call, too.
func asked(from, to []calls, sent map[string]float64) (sum float64) {
	for i := range to {
		for name, n := range to[i] {
			if before := from[i][name]; n >= before { // else the server was restarted
				n -= before
			}
			share, seen := sent[name]
			if !seen {
				share = 1
			}
			sum += n * share
		}
	}
	return sum
}

// watch looks at the commands of all nodes for a while, by MONITOR, and returns the
// share of each that clients have sent, and not scripts.
func (s *site) watch(ctx context.Context, d time.Duration) map[string]float64 {
	var mu sync.Mutex
	clients, scripts := calls{}, calls{}
	s.onEach(func(_ int, addr string) {
		c, err := connect(ctx, addr, d)
		if err != nil {
			return
		}
		defer c.Close()
		if _, err := c.Write([]byte("MONITOR\r\n")); err != nil {
			return
		}
		for lines := bufio.NewScanner(c); lines.Scan() && !strings.HasPrefix(lines.Text(), "-"); {
			if name, script := monitored(lines.Text()); name != "" {
				mu.Lock()
				if script {
					scripts[name]++
				} else {
					clients[name]++
				}
				mu.Unlock()
			}
		}
	})
	share := map[string]float64{}
	for name, n := range clients {
		share[name] = n / (n + scripts[name])
	}
	for name := range scripts {
		share[name] += 0 // a command of scripts alone has none
	}
	return share
}

// monitored is the command in a line of MONITOR, and whether a script has called it:
//
//	+1339518083.107412 [0 lua] "get" "x"
func monitored(line string) (name string, script bool) {
	_, rest, ok := strings.Cut(line, " [")
	who, command, more := strings.Cut(rest, "] \"")
	name, _, end := strings.Cut(command, "\"")
	if !ok || !more || !end {
		return "", false
	}
	return strings.ToLower(name), strings.HasSuffix(who, " lua")
}
