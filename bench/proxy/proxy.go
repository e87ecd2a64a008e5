// Package proxy is the network between a benchmark's clients and its masters:
// it makes round trips longer and breaks single nodes in ways that their own
// process cannot.
//
// It runs in a process of its own, so that its CPU is not taken for the
// client's. Everything that it does is done by one thread: what has been read
// waits in a queue until its time has come, and the thread sleeps on a timer of
// the kernel that is exact to some microseconds, where the runtime's is not.
// Latency is added to all that is under way, and throughput is not limited by it.
//
// Goroutines in place of the one thread, on the same timer, were tried: they are
// 300 lines less, add 35 µs to a PING, and cost a quarter of the throughput at
// 200 µs.
package proxy

import (
	"fmt"
	"strings"
	"time"

	"github.com/redlock-go/redlock/bench/child"
)

// proxyEnv tells a copy of this binary to be the proxy, and before which masters.
const proxyEnv = "REDLOCK_BENCH_PROXY"

// Proxy is a handle on the process.
type Proxy struct {
	// Addrs are where clients dial, one for each backend, in the same order.
	Addrs []string

	process *child.Process
}

// Start runs this binary once more, as a proxy before the backends. The program
// must call [ServeIfProxy] first thing.
func Start(backends []string) (*Proxy, error) {
	process, addrs, err := child.Start(proxyEnv, strings.Join(backends, ","), len(backends))
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	return &Proxy{addrs, process}, nil
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

// Pass ends what Hang, Refuse or BlackHole has begun. What a node was sent while
// it hung arrives now.
func (p *Proxy) Pass(node int) error { return p.tell("pass %d", node) }

// done is the answer to an order that was carried out.
const done = "done"

// tell gives an order and waits until it is carried out.
func (p *Proxy) tell(format string, args ...any) error {
	said, err := p.process.Ask(fmt.Sprintf(format, args...))
	if err == nil && said != done {
		err = fmt.Errorf("%s", said)
	}
	if err != nil {
		err = fmt.Errorf("proxy: %w", err)
	}
	return err
}

// Close ends the process and waits until it is gone.
func (p *Proxy) Close() error { return p.process.Close() }

// ServeIfProxy is the proxy, in a process that [Start] has started.
func ServeIfProxy() {
	child.Serve(proxyEnv, func(backends string) error { return serve(strings.Split(backends, ",")) })
}
