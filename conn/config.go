package conn

import (
	"cmp"
	"context"
	"crypto/tls"
	"log/slog"
	"math"
	"math/rand/v2"
	"net"
	"slices"
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/base/knobs"
	"github.com/redlock-go/redlock/resp"
)

// Defaults of [Config].
const (
	defaultDialTimeout  = time.Second
	defaultStallTimeout = time.Second
	defaultMaxInFlight  = 64 << 10

	// defaultMaxInFlightBytes is as many with keys of 4 KiB: long keys fill no node before short ones would. So much
	// memory is taken by a node that is slow with these, and answers steadily.
	defaultMaxInFlightBytes = defaultMaxInFlight * 4 << 10

	// defaultStragglers is long enough for most wrong nodes to answer, so an owner learns of them at its start.
	defaultStragglers = 40 * time.Millisecond

	// overrun is how long a Dialer is waited for after its context's end.
	overrun = time.Second
)

// Config configures [Nodes], or a [Fleet]. A zero field means its default. Its functions are called by several
// goroutines at once. A blocked one delays its own node alone.
type Config struct {
	Addresses []Address // see ParseAddresses

	// TLS configures nodes with rediss:// addresses, from TLS 1.2 on. The server name is the node's host unless set here.
	TLS *tls.Config
	// TLSFor, if set, is called at every dial with the node's host and port, for certificates different from node to node,
	// or changing. Nil means TLS. It must not block.
	TLSFor func(addr string) *tls.Config
	// Credentials, if set, is called at every dial with the node's host and port, or path. Its result replaces the login
	// of the address and is not kept. Two empty strings mean no login. ctx ends after 10 s, and it must return by then.
	// DialTimeout does not count its time.
	Credentials func(ctx context.Context, addr string) (user, password string, err error)
	// Dialer, if set, opens the connections ("tcp" or "unix"), and Portable is on. addr has the name of the node as
	// configured. TLS is laid over its connections. It must return when ctx ends.
	Dialer func(ctx context.Context, network, addr string) (net.Conn, error)
	// Portable uses package net on Linux too, where the default is raw sockets. TLS on any node and a Dialer switch it on
	// for all of them.
	Portable bool
	// DialTimeout bounds connecting to one address, and the handshake. If a name has several, the next is tried after 250
	// ms, or as soon as one has failed. After a quarter of it a TLS handshake without an answer is doubted: the error says
	// that the port may have no TLS. Default: 1 s.
	DialTimeout time.Duration
	// StallTimeout ends the connection of a node owing replies and sending none; a push is no reply. Default: 1 s.
	StallTimeout time.Duration
	// Name is shown by CLIENT LIST of the servers: printable ASCII without spaces.
	Name string

	// MaxInFlight is how many replies one connection may owe. A node about to owe more is sent nothing until it has
	// answered all: a batch fails there as not sent. One owing none is sent a batch of any size. Default: 65,536.
	// MaxInFlightBytes is the same for the bytes of the unanswered requests, kept in memory. Default: 256 MiB.
	MaxInFlight, MaxInFlightBytes int
	// MaxReply bounds one reply in bytes, and so a buffer for each node. A larger one ends the connection, with
	// ErrOversized. Default: 16 KiB; of a Fleet by New, 16 KiB with bulk strings of 4 KiB.
	MaxReply int

	// Accept, if set, judges the server of each new connection. An error refuses it, and is that of the node; it is dialed
	// again. It is called with the lock held, must not block, and may use Fleet.Node.
	Accept func(node int, s Server) error
	// Looks has servers asked again, while connections last, whether they were replicas meanwhile. That ends the
	// connection: so no vote counts of a server with the data of another one, loaded unseen. A batch for one node counts as
	// a vote only if it says so ([Batch].Votes).
	Looks bool
	// Logger receives warnings about nodes that may evict keys, or forget what they are declared to keep. Nil disables them.
	Logger *slog.Logger

	// What follows is for the owner of a Fleet.

	// OnUp is called when a node came up, before anything is sent to it. OnDown is called when it went down, before
	// anything it owes fails, or when its first dial has failed. They are called with the lock held, must not block, and
	// may use Node, and OnUp SendTo.
	OnUp, OnDown func(node int)
	// OnPush receives each push of a node. It is called like OnUp, from within Sweep, Send or SendTo; v is valid during
	// the call only. Nil drops all pushes.
	OnPush func(node int, v *resp.Value)
	// Probes, where set, is called for every new connection, and adds the owner's commands to the handshake, as words.
	// answer reads the reply; an error ends the connection. form is the node's form, as the answers have shown.
	Probes func(ask func(answer func(*resp.Value) error, words ...string)) (form func() uint16)

	knobs          *knobs.Conn   // set by our own client, and by tests
	permanentPause time.Duration // 0 outside tests
}

func (c Config) withDefaults() Config {
	c.DialTimeout = min(cmp.Or(max(0, c.DialTimeout), defaultDialTimeout), math.MaxInt64-overrun)
	c.StallTimeout = cmp.Or(max(0, c.StallTimeout), defaultStallTimeout)
	c.MaxInFlight = cmp.Or(max(0, c.MaxInFlight), defaultMaxInFlight)
	c.MaxInFlightBytes = cmp.Or(c.MaxInFlightBytes, defaultMaxInFlightBytes)
	c.permanentPause = cmp.Or(c.permanentPause, permanentPause)
	k := new(knobs.Conn)
	if c.knobs != nil {
		*k = *c.knobs
	}
	c.knobs = k
	k.Stragglers = cmp.Or(k.Stragglers, defaultStragglers)
	if k.Clock == nil {
		k.Clock = clock.New()
	}
	if k.Rand == nil {
		k.Rand = rand.Float64
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
