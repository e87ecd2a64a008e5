// Package port finds TCP ports for the servers of tests. A server that is down for a while comes back at its port:
// meanwhile no server of another test may answer there.
package port

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
)

// Port is a TCP port of 127.0.0.1 for a server, now and after each new start.
type Port struct {
	number int
	claim  net.PacketConn
}

// New finds a port without a listener, and keeps it until Close. use is called with its address; its error has New look
// for another one. The port is below the kernel's range for outgoing connections: one of these may take any port in the
// range while its server is down, and then this cannot come back. While the port is kept no other server with this
// package gets it, however late its own one listens: two servers with one promised port would both seem to answer there.
// The claim is the UDP port of the same number: it is not needed otherwise, and ends with the process.
func New(use func(addr string) error) (Port, error) {
	var errs []error
	for range 100 {
		p := Port{number: 10000 + rand.IntN(22000)}
		var err error
		if p.claim, err = net.ListenPacket("udp", p.Addr()); err != nil {
			errs = append(errs, err)
			continue
		}
		if err = use(p.Addr()); err == nil {
			return p, nil
		}
		errs = append(errs, err, p.claim.Close())
	}
	return Port{}, errors.Join(errs...)
}

// Free is a port that a server of another program may use: use of New looks for a listener, and leaves none.
func Free() (Port, error) {
	return New(func(addr string) error {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			return err
		}
		return l.Close()
	})
}

// String is the number.
func (p Port) String() string { return strconv.Itoa(p.number) }

// Addr is the port's address.
func (p Port) Addr() string { return net.JoinHostPort("127.0.0.1", p.String()) }

// Close lets others have it. It may be called again.
func (p *Port) Close() (err error) {
	if p.claim != nil {
		err = p.claim.Close()
		p.claim = nil
	}
	return err
}
