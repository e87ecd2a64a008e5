package fakeredis

import (
	"crypto/tls"
	"net"
	"time"
)

// Options are the kind of server to start. The zero value is a Redis 7.0 master without a password
// on a free loopback port.
type Options struct {
	// Addr is host:port. Empty means a free port of 127.0.0.1, kept until Close.
	Addr string
	// TLS, if set, is used for connections.
	TLS *tls.Config
	// Flavor is the dialect.
	Flavor Flavor
	// Password, if set, must be given before anything else is answered.
	Password string
	// User is the user of the password, "default" if empty. Another one switches the default user
	// off.
	User string
	// Deny lists forbidden commands, as by Server.Deny.
	Deny []string
	// Now is the clock for expiring keys; time.Now if nil. It is called with the server locked.
	// Delays run on real time all the same.
	Now func() time.Time
	// Listen is net.Listen if nil. Another one serves other connections, such as those in memory.
	// Their deadlines must work: the server uses them to wake its readers. Its closed listeners
	// return net.ErrClosed from Accept.
	Listen func(network, addr string) (net.Listener, error)
}

// defaultUser is the user of a connection without a login.
const defaultUser = "default"

func (o Options) withDefaults() Options {
	if o.Listen != nil && o.Addr == "" {
		o.Addr = "127.0.0.1:0"
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
