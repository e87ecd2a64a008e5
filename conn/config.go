package conn

import (
	"crypto/tls"
	"math/rand/v2"
	"net"
	"time"

	"github.com/redlock-go/redlock/internal/clock"
)

// Defaults of [Config].
const (
	DefaultDialTimeout  = time.Second
	DefaultStallTimeout = time.Second
	DefaultMaxInFlight  = 16 << 10

	minBackoff = 20 * time.Millisecond
	maxBackoff = 2 * time.Second
)

// Config is what a [Fleet] needs to know. Zero fields mean the defaults.
type Config struct {
	Addresses []Address
	// Portable forces the net.Conn path where there is a raw one. TLS on any
	// node forces it for all of them.
	Portable bool
	TLS      *tls.Config
	// DialTimeout bounds connecting and the handshake together.
	DialTimeout time.Duration
	// StallTimeout is how long a connection may owe a reply without sending
	// a byte before it is closed.
	StallTimeout time.Duration
	// MaxInFlight is how many replies one connection may owe before it is
	// closed.
	MaxInFlight int
	// Name is sent as CLIENT SETNAME where not empty; a refusal is ignored.
	Name string
	// Scripts are loaded into the node's cache on every new connection, each
	// under the SHA1 digest it must turn out to have.
	Scripts []Script

	// OnUp and OnDown hear of a connection that came up or ended, with the
	// fleet's lock held; not of those that Close ends. They may ask Fleet.Node
	// and nothing else, and must not block. Default: nobody.
	OnUp, OnDown func(node int)

	Clock clock.Clock
	// Rand returns a number from [0, 1), for the jitter of reconnects. It is
	// called by several goroutines at once.
	Rand func() float64
}

// Script is a Lua text and its digest in hexadecimal.
type Script struct{ Text, SHA1 string }

func (c Config) withDefaults() Config {
	if c.DialTimeout <= 0 {
		c.DialTimeout = DefaultDialTimeout
	}
	if c.StallTimeout <= 0 {
		c.StallTimeout = DefaultStallTimeout
	}
	if c.MaxInFlight <= 0 {
		c.MaxInFlight = DefaultMaxInFlight
	}
	if c.Clock == nil {
		c.Clock = clock.System()
	}
	if c.Rand == nil {
		c.Rand = rand.Float64
	}
	return c
}

// usesRaw says whether every node can be reached on the raw path.
func (c Config) usesRaw() bool {
	for _, a := range c.Addresses {
		if a.TLS {
			return false
		}
	}
	return rawSupported && !c.Portable
}

// keepAlive finds peers that vanished while nothing is asked of them.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3}
