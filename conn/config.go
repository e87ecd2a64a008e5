package conn

import (
	"cmp"
	"context"
	"crypto/tls"
	"log/slog"
	"math"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/resp"
)

// Defaults of [Config].
const (
	defaultDialTimeout  = time.Second
	DefaultStallTimeout = time.Second
	DefaultMaxInFlight  = 64 << 10 // as many operations as wait by default: no burst from their queue is more than the slowest node may owe

	// defaultMaxInFlightBytes is as many with keys of 4 KiB: long keys fill no node before short ones would. So much
	// memory is taken by a node that is slow with these, and answers steadily.
	defaultMaxInFlightBytes = DefaultMaxInFlight * 4 << 10

	// defaultStragglers is long enough for most wrong nodes to answer, so New can fail.
	defaultStragglers = 40 * time.Millisecond

	// overrun is how long a Dialer is waited for after its context's end.
	overrun = time.Second
)

// Config configures a [Fleet]. Zero fields mean the defaults. Its functions are called by several goroutines at once.
// A blocking one delays only its own node.
type Config struct {
	Addresses []Address

	// These are documented in redlock.Config. TLS on any node and a Dialer force Portable for all of them. TLS is laid
	// over a Dialer's connections. Two empty strings of Credentials mean no login; an error of theirs is kept, and
	// shown. After a quarter of DialTimeout a TLS handshake without an answer is doubted: see secure.go. Pushes are no
	// replies.
	Portable                  bool
	TLS                       *tls.Config
	TLSFor                    func(addr string) *tls.Config
	Credentials               func(ctx context.Context, addr string) (user, password string, err error)
	Dialer                    func(ctx context.Context, network, addr string) (net.Conn, error)
	DialTimeout, StallTimeout time.Duration
	// Lookup returns the addresses of a name, in place of the system's resolver, also for a Dialer.
	Lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)
	Name   string // as servers take it

	// MaxInFlight is how many replies one connection may owe. One that would owe more is sent nothing until it has
	// answered all: a batch fails there as not sent. A connection that owes none is sent a batch of any size.
	// MaxInFlightBytes is the same for the bytes of the unanswered requests, kept in memory.
	MaxInFlight, MaxInFlightBytes int
	// Quarantine, where not 0, makes the quarantine strict. A node connected for the first time has no vote until its
	// server reports an uptime of this long. A restarted node has none until this long after its return. It must be
	// the longest TTL of any client.
	Quarantine time.Duration
	// MaxReply bounds one reply in bytes, and so a buffer for each node. A larger one ends the connection, with
	// ErrOversized. Default: 16 KiB, with bulk strings of 4 KiB.
	MaxReply int
	// Stragglers is how much longer than a quorum the other nodes have for their first dial: as long again as it has
	// taken, and this time, or 40 ms.
	Stragglers time.Duration
	// Looks has servers asked again, while connections last, whether they were replicas meanwhile.
	Looks bool
	// TrustRestarts switches the quarantine off.
	TrustRestarts bool
	// Fenced refuses nodes without a run_id, also where the quarantine does not need it, and servers before Redis 5,
	// where a script may not write once it has read the time.
	Fenced bool
	// OnUp is called when a node came up, before anything is sent to it. OnDown is called when it went down, before
	// anything it owes fails, or when its first dial has failed. They are called with the lock held, must not block, and
	// may use Node, and OnUp SendTo.
	OnUp, OnDown func(node int)
	// OnStays is called, like OnDown, for a node that stays down, at each kind of failure new since it went down.
	OnStays func(node int)
	// OnPush receives each push of a node, except pushes too large to be decoded. It is called like OnUp, from within
	// Sweep, Send or SendTo; v is valid during the call only. Nil drops all pushes.
	OnPush func(node int, v *resp.Value)
	// errors.Is finds none of the Hidden errors in the errors of nodes. To the owner's callers they have another meaning.
	// A Dialer, for instance, may return one, and it would be wrong there. Errors of contexts are always hidden.
	Hidden []error
	// Servers, where set, has the servers of other fleets too: none of them may be a node of this one.
	Servers *Servers
	// Probes, where set, is called for every new connection, and adds the owner's commands to the handshake, as words.
	// answer reads the reply; an error ends the connection. form is the node's form, as the answers have shown.
	Probes func(ask func(answer func(*resp.Value) error, words ...string)) (form func() uint16)

	// Logger receives warnings about nodes that may evict keys or show no run_id. Nil disables them.
	Logger *slog.Logger
	Clock  clock.Clock
	// Rand returns a number from [0, 1), for the jitter of reconnects. It is called by several goroutines at once.
	Rand func() float64

	permanentPause time.Duration // 0 outside tests
}

func (c Config) withDefaults() Config {
	c.DialTimeout = min(cmp.Or(max(0, c.DialTimeout), defaultDialTimeout), math.MaxInt64-overrun)
	c.StallTimeout = cmp.Or(max(0, c.StallTimeout), DefaultStallTimeout)
	c.MaxInFlight = cmp.Or(max(0, c.MaxInFlight), DefaultMaxInFlight)
	c.Stragglers = cmp.Or(c.Stragglers, defaultStragglers)
	c.MaxInFlightBytes = cmp.Or(c.MaxInFlightBytes, defaultMaxInFlightBytes)
	c.permanentPause = cmp.Or(c.permanentPause, permanentPause)
	c.Servers = cmp.Or(c.Servers, new(Servers))
	if c.Clock == nil {
		c.Clock = clock.New()
	}
	if c.Rand == nil {
		c.Rand = rand.Float64
	}
	return c
}

// usesRaw reports whether every node can be reached on the raw path.
func (c Config) usesRaw() bool {
	return rawSupported && !c.Portable && c.Dialer == nil && // its connection may not be a socket
		!slices.ContainsFunc(c.Addresses, func(a Address) bool { return a.TLS })
}

// tlsFor is the configuration for a node, with the least version and the server's name set.
func (c Config) tlsFor(addr Address) *tls.Config {
	chosen := c.TLS
	if c.TLSFor != nil {
		if own := c.TLSFor(addr.Host); own != nil {
			chosen = own
		}
	}
	chosen = chosen.Clone() // nil for nil
	if chosen == nil {
		chosen = new(tls.Config)
	}
	chosen.MinVersion = max(chosen.MinVersion, tls.VersionTLS12)
	if chosen.ServerName == "" {
		chosen.ServerName, _, _ = net.SplitHostPort(addr.Host)
	}
	return chosen
}

// keepAlive detects peers that vanish while a connection is idle.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3}
