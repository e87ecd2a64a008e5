package fakeredis

import (
	"crypto/tls"
	"net"
	"time"
)

// Options are the kind of server to start. The zero value is a Redis 7.0
// master without a password on a free loopback port.
type Options struct {
	// Addr is host:port, or the path of a Unix socket, which starts with a
	// slash. Empty means a free port of 127.0.0.1.
	Addr string
	// TLS, if set, is used for connections.
	TLS *tls.Config
	// Flavor is the dialect.
	Flavor Flavor
	// Password, if set, must be given before anything else is answered.
	Password string
	// User is the one that the password belongs to, "default" if empty. When
	// it is another, the default user is switched off.
	User string
	// Mode is the mode in HELLO and INFO, "standalone" if empty. It changes nothing
	// else: a "cluster" does not redirect, and a "sentinel" keeps keys.
	Mode string
	// Deny lists commands that are forbidden, as by Server.Deny.
	Deny []string
	// Config adds to, or replaces, what CONFIG GET knows.
	Config map[string]string
	// Now is the clock that keys expire by; time.Now if nil. It is called with
	// the server locked. Delays run on real time all the same.
	Now func() time.Time
	// Listen is net.Listen if nil. Another one serves connections of another kind, such
	// as those in memory. Their deadlines must work: the server uses them to wake its
	// readers. Its listeners return net.ErrClosed from Accept when they are closed.
	Listen func(network, addr string) (net.Listener, error)
}

// defaultUser is the user of a connection that has not logged in.
const defaultUser = "default"

func (o Options) withDefaults() Options {
	if o.Addr == "" {
		o.Addr = "127.0.0.1:0"
	}
	if o.Mode == "" {
		o.Mode = "standalone"
	}
	if o.User == "" {
		o.User = defaultUser
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Listen == nil {
		o.Listen = net.Listen
	}
	return o
}
