// Package proxy is the network between the clients of a benchmark and its masters: it makes
// round trips longer, and breaks single nodes in ways that their own process cannot.
//
// It runs in another process, on the processors of the servers, so that its CPU is not counted as the client's. Each
// direction of a connection has a goroutine that reads, and one that writes what it has read
// when its time has come. Latency is added to everything in flight, and throughput is not
// limited by it.
package proxy

import (
	"fmt"
	"strings"
	"time"

	"github.com/redlock-go/redlock/bench/child"
	"github.com/redlock-go/redlock/bench/place"
)

// proxyEnv makes a copy of this binary the proxy, and names the masters.
const proxyEnv = "REDLOCK_BENCH_PROXY"

// Proxy is a handle on the process.
type Proxy struct {
	// Addrs are where clients dial, one for each backend, in the same order.
	Addrs []string

	process *child.Process
}

// Start runs this binary once more, as a proxy before the backends. The program must call
// [ServeIfProxy] first.
func Start(backends []string) (*Proxy, error) {
	process, addrs, err := child.StartBy(place.Serve, proxyEnv, strings.Join(backends, ","), len(backends))
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	return &Proxy{addrs, process}, nil
}

// Delay makes every round trip to a node longer by rtt, half of it in each direction, and by up
// to jitter more, at random. Each connection keeps its order.
func (p *Proxy) Delay(node int, rtt, jitter time.Duration) error {
	return p.order("delay %d %d %d", node, rtt.Nanoseconds(), jitter.Nanoseconds())
}

// Hang keeps all connections and carries nothing: the kernel still accepts connections and
// bytes.
func (p *Proxy) Hang(node int) error { return p.order("hang %d", node) }

// Refuse resets all connections of a node, and refuses new ones.
func (p *Proxy) Refuse(node int) error { return p.order("refuse %d", node) }

// BlackHole carries nothing either, and does not answer a connect.
func (p *Proxy) BlackHole(node int) error { return p.order("blackhole %d", node) }

// Pass ends what Hang, Refuse or BlackHole has begun. What a node was sent while it hung
// arrives now.
func (p *Proxy) Pass(node int) error { return p.order("pass %d", node) }

// done is the answer to an order that was carried out.
const done = "done"

// order writes an order and waits until it is carried out.
func (p *Proxy) order(format string, args ...any) error {
	answer, err := p.process.Ask(fmt.Sprintf(format, args...))
	if err == nil && answer != done {
		err = fmt.Errorf("%s", answer)
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
