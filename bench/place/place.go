// Package place gives servers and clients processors of their own.
//
// On shared processors a server that has just been sent a command takes the processor from the sender, which may
// hold a lock at that moment. That slows a client down, some more than others, as servers on other machines never
// do. With a half of the processors each, rounds differ by a few per cent, and what a client costs is its own.
package place

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// env has the halves, for the clients and for all processes that they start.
const env = "REDLOCK_BENCH_PROCESSORS"

// shared is its value where there are none.
const shared = "together"

// halves are the numbers of processors. Without them all processes share what there is.
type halves struct{ servers, clients []int }

// now are the halves of this process.
var now = parse(os.Getenv(env))

// Separate begins the program again, on the half of the processors that is the clients'. It returns where that has
// happened already, and where there is only one processor or no way to choose one. Nothing may be lost by beginning
// again: call it before all else.
func Separate() error {
	if os.Getenv(env) != "" {
		return nil
	}
	h := split(available())
	if len(h.clients) == 0 {
		return nil
	}
	return restart(h)
}

// Choose is Separate, or with together has this program and those that it starts share the processors.
func Choose(together bool) error {
	if !together {
		return Separate()
	}
	now = halves{}
	_ = os.Setenv(env, shared)
	return nil
}

// Serve starts a server, on the servers' half.
func Serve(cmd *exec.Cmd) error {
	if len(now.servers) == 0 {
		return cmd.Start()
	}
	return on(now.servers, cmd.Start)
}

// Describe says who has which processors. Running are servers that this program has not started.
func Describe(running bool) string {
	switch {
	case len(now.clients) == 0:
		return "together: servers and clients share the processors"
	case running:
		return fmt.Sprintf("the clients have %s; the servers run where they are, at best on %s", name(now.clients), name(now.servers))
	}
	return fmt.Sprintf("apart: the clients have %s, the servers %s", name(now.clients), name(now.servers))
}

// Servers is how many processors the servers have for themselves; 0: they share all.
func Servers() int { return len(now.servers) }

// Processors is how many there are for all.
func Processors() int { return max(len(available()), len(now.clients)+len(now.servers)) }

// name is "processor 1" or "processors 2, 3".
func name(numbers []int) string {
	if len(numbers) == 1 {
		return fmt.Sprint("processor ", numbers[0])
	}
	return "processors " + strings.Join(texts(numbers), ", ")
}

// split divides processors, which are in the order of their cores. Processor 0 handles most interrupts; it goes to
// the servers, as they have on machines of their own.
func split(processors []int) (h halves) {
	if half := len(processors) / 2; half > 0 {
		h.servers, h.clients = processors[:half], processors[half:2*half]
	}
	return h
}

// String is what parse reads.
func (h halves) String() string {
	return strings.Join(texts(h.servers), ",") + ";" + strings.Join(texts(h.clients), ",")
}

func parse(text string) (h halves) {
	servers, clients, _ := strings.Cut(text, ";")
	h.servers, h.clients = numbers(servers), numbers(clients)
	if len(h.clients) == 0 {
		return halves{}
	}
	return h
}

func texts(numbers []int) []string {
	all := make([]string, len(numbers))
	for i, n := range numbers {
		all[i] = strconv.Itoa(n)
	}
	return all
}

func numbers(text string) (all []int) {
	for part := range strings.SplitSeq(text, ",") {
		if n, err := strconv.Atoi(part); err == nil {
			all = append(all, n)
		}
	}
	return all
}
