// Package proxy is the network between a benchmark's clients and its masters:
// it makes round trips longer and breaks single nodes in ways that their own
// process cannot.
//
// It runs in a process of its own, so that its CPU is not taken for the
// client's. Everything that it does is done by one thread: what has been read
// waits in a queue until its time has come, and the thread sleeps on a timer of
// the kernel that is exact to some microseconds, where the runtime's is not.
// Latency is added to what is under way, whatever that is, and throughput is
// not limited by it.
package proxy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// proxyEnv tells a copy of this binary to be the proxy, and before whom.
const proxyEnv = "REDLOCK_BENCH_PROXY"

// grace is how long the process may take to answer, or to end.
const grace = 10 * time.Second

// Proxy is a handle on the process.
type Proxy struct {
	// Addrs are where clients dial, one for each backend, in the same order.
	Addrs []string

	cmd     *exec.Cmd
	stdin   io.WriteCloser
	answers *bufio.Scanner
}

// Start runs this binary once more, as a proxy before the backends. The program
// must call [ServeIfProxy] first thing.
func Start(ctx context.Context, backends []string) (*Proxy, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), self)
	cmd.Env = append(os.Environ(), proxyEnv+"="+strings.Join(backends, ","))
	cmd.Stderr = os.Stderr
	// The child lives as long as this pipe is open at our end.
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	p := &Proxy{cmd: cmd, stdin: stdin, answers: bufio.NewScanner(stdout)}
	for range backends {
		addr, err := p.answer()
		if err != nil {
			return nil, errors.Join(err, p.Close())
		}
		p.Addrs = append(p.Addrs, addr)
	}
	return p, nil
}

// Delay makes every round trip to a node longer by rtt, half of it each way, and
// by up to jitter more, by chance. What is on one connection stays in order.
func (p *Proxy) Delay(node int, rtt, jitter time.Duration) error {
	return p.tell("delay %d %d %d", node, rtt.Nanoseconds(), jitter.Nanoseconds())
}

// Hang leaves everything as it is and carries nothing: the kernel still accepts
// connections and bytes.
func (p *Proxy) Hang(node int) error { return p.tell("hang %d", node) }

// Refuse resets all connections of a node, and refuses new ones.
func (p *Proxy) Refuse(node int) error { return p.tell("refuse %d", node) }

// BlackHole carries nothing either, and does not answer to a connect.
func (p *Proxy) BlackHole(node int) error { return p.tell("blackhole %d", node) }

// Pass ends whatever Hang, Refuse or BlackHole has begun. What a node was sent
// while it hung arrives now.
func (p *Proxy) Pass(node int) error { return p.tell("pass %d", node) }

// tell gives an order and waits until it is carried out.
func (p *Proxy) tell(format string, args ...any) error {
	if _, err := fmt.Fprintf(p.stdin, format+"\n", args...); err != nil {
		return fmt.Errorf("proxy: %w", err)
	}
	said, err := p.answer()
	if err == nil && said != done {
		err = fmt.Errorf("proxy: %s", said)
	}
	return err
}

// done is the answer to an order that was carried out.
const done = "done"

// answer reads one line.
func (p *Proxy) answer() (string, error) {
	if !p.answers.Scan() {
		return "", fmt.Errorf("proxy: its process has ended: %w", errors.Join(p.answers.Err(), io.ErrUnexpectedEOF))
	}
	return p.answers.Text(), nil
}

// Close ends the process and waits until it is gone.
func (p *Proxy) Close() error {
	_ = p.stdin.Close()
	stuck := time.AfterFunc(grace, func() { _ = p.cmd.Process.Kill() })
	defer stuck.Stop()
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("proxy: %w", err)
	}
	return nil
}

// ServeIfProxy does nothing in a normal process. In one that [Start] has
// started it serves until stdin ends, and exits. Call it before anything else,
// also from the TestMain of a test that starts a proxy.
func ServeIfProxy() {
	backends := os.Getenv(proxyEnv)
	if backends == "" {
		return
	}
	if err := serve(strings.Split(backends, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "proxy:", err)
		os.Exit(1)
	}
	os.Exit(0)
}
