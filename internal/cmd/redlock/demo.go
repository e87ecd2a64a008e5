package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/embedded"
)

const aboutDemo = `
Demo shows locks at work in ten seconds, with nothing to install: three masters inside this process, and
three worker processes that want one lock. One master is killed, and one worker is stopped while it holds
the lock.

  redlock demo`

// demoTTL is the TTL of the demo's lock, and the wait of a node that has forgotten its locks.
const demoTTL = time.Second

// demoWorker is the hidden argument of worker processes.
const demoWorker = "a worker of the demo"

func demo(ctx context.Context, env *environment, args []string) error {
	rest, err := newSettings(env, "demo", aboutDemo).parse(args)
	switch {
	case err != nil:
		return err
	case len(rest) == 2 && rest[0] == demoWorker:
		return work(ctx, env, rest[1])
	case len(rest) > 0:
		return usage("demo takes no arguments")
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM) // a stopped worker would stay
	defer stop()
	masters, err := embedded.Start(3)
	if err != nil {
		return err
	}
	defer masters.Close()
	client, err := demoClient(strings.Join(masters.Nodes(), ","))
	if err != nil {
		return err
	}
	d := &stage{env: env, began: time.Now()}
	d.show("Three masters are up, on %s.", strings.Join(masters.Addrs(), ", "))
	d.show("They are given their part in fencing, which takes as long as the longest TTL, %v.", demoTTL)
	err = client.InitFencing(ctx)
	_ = client.Close()
	if err != nil {
		return err
	}
	d.show("Three workers want one lock. Each holds it for about 0.2 s and writes to a resource meanwhile.")
	defer d.end()
	for i := range d.workers {
		if err := d.start(i, masters.Nodes()); err != nil {
			return err
		}
	}
	d.pause(ctx, 2*time.Second)
	d.show("Master 1 is killed. Two of three are a quorum, so the workers go on:")
	masters.Kill(0)
	d.pause(ctx, 1500*time.Millisecond)
	if stopped, err := d.stopHolder(ctx); err == nil {
		d.show("Worker %d has the lock, and is stopped (SIGSTOP) before it writes. After its TTL of %v others get the lock:", stopped+1, demoTTL)
		d.pause(ctx, 2500*time.Millisecond)
		d.show("Worker %d goes on. It does not know that time has passed, and writes with its old token:", stopped+1)
		_ = resume(d.workers[stopped].process)
		d.pause(ctx, 1500*time.Millisecond)
	}
	d.summary()
	return ctx.Err()
}

// stage is the scene of the demo.
type stage struct {
	env     *environment
	began   time.Time
	workers [3]struct {
		process *os.Process
		ended   chan struct{}
	}

	mu      sync.Mutex
	holder  int    // the worker with the lock that has not written yet, plus 1; 0: none
	stop    bool   // the next holder is to be stopped
	stopped int    // the stopped worker, plus 1
	largest uint64 // the resource: the largest token seen
	written [3]int
	refused int
}

// show prints a line of the story.
func (d *stage) show(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.line("\n"+format, args...)
}

// line prints a line. d.mu is held.
func (d *stage) line(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	blank := strings.HasPrefix(text, "\n")
	if blank {
		fmt.Fprintln(d.env.out)
	}
	fmt.Fprintf(d.env.out, "%5.2fs  %s\n", time.Since(d.began).Seconds(), strings.TrimPrefix(text, "\n"))
}

func (d *stage) pause(ctx context.Context, long time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(long):
	}
}

// start starts a worker and serves its messages.
func (d *stage) start(i int, nodes []string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	child := exec.Command(self, "demo", demoWorker, strings.Join(nodes, ","))
	in, err := child.StdinPipe()
	if err != nil {
		return err
	}
	out, err := child.StdoutPipe()
	if err != nil {
		return err
	}
	child.Stderr = d.env.err
	if err := child.Start(); err != nil {
		return err
	}
	w := &d.workers[i]
	w.process, w.ended = child.Process, make(chan struct{})
	go func() {
		defer close(w.ended)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			d.message(i, lines.Text(), in)
		}
		_ = child.Wait()
	}()
	return nil
}

// message serves a worker's message: "holds n" or "writes n".
func (d *stage) message(i int, text string, reply io.Writer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	verb, number, _ := strings.Cut(text, " ")
	token, _ := strconv.ParseUint(number, 10, 64)
	switch verb {
	case "holds":
		d.holder = i + 1
		if d.stop && suspend(d.workers[i].process) == nil {
			d.stop, d.stopped = false, i+1
		}
	case "writes":
		if token < d.largest {
			d.refused++
			d.line("    worker %d writes with token %d: REFUSED, the resource has seen %d", i+1, token, d.largest)
		} else {
			d.largest = token
			d.written[i]++
			d.line("    worker %d writes with token %d", i+1, token)
		}
		if d.holder == i+1 {
			d.holder = 0
		}
	}
	fmt.Fprintln(reply, "go on")
}

// stopHolder stops the next worker with the lock, before it writes.
func (d *stage) stopHolder(ctx context.Context) (worker int, err error) {
	d.mu.Lock()
	d.stop = true
	d.mu.Unlock()
	for range 300 {
		d.pause(ctx, 10*time.Millisecond)
		d.mu.Lock()
		worker = d.stopped - 1
		d.mu.Unlock()
		if worker >= 0 {
			return worker, nil
		}
	}
	return 0, errors.New("this system cannot stop a process")
}

func (d *stage) summary() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.line("\nEnd: %d, %d and %d writes of the three workers; refused: %d of a holder that had lost the lock.",
		d.written[0], d.written[1], d.written[2], d.refused)
	fmt.Fprint(d.env.out, `
Without the token the stopped worker would have overwritten what the others did: a lock alone cannot
stop a process that sleeps. redlock help lists what else there is; redlock serve -embedded is a server
to play with from any language.
`)
}

func (d *stage) end() {
	for i := range d.workers {
		if w := &d.workers[i]; w.process != nil {
			_ = w.process.Kill()
			<-w.ended
		}
	}
}

// demoClient returns a fenced client of the masters.
func demoClient(nodes string) (*redlock.Client, error) {
	return redlock.New(redlock.Config{Nodes: strings.Split(nodes, ","), Fenced: true, MaxTTL: demoTTL, Logger: slog.New(slog.DiscardHandler)})
}

// work is the code of a worker: it writes to the resource each time it has the lock, and reports to the demo.
func work(ctx context.Context, env *environment, nodes string) error {
	client, err := demoClient(nodes)
	if err != nil {
		return err
	}
	defer client.Close()
	replies := bufio.NewScanner(env.in)
	for ctx.Err() == nil {
		lock, err := client.Acquire(ctx, "demo", demoTTL)
		if err != nil {
			return cmp.Or(ctx.Err(), err)
		}
		fmt.Fprintln(env.out, "holds", lock.Fence())
		if !replies.Scan() {
			return nil
		}
		time.Sleep(200 * time.Millisecond) // the work
		fmt.Fprintln(env.out, "writes", lock.Fence())
		if !replies.Scan() {
			return nil
		}
		_ = lock.Release(ctx)
	}
	return nil
}
