package realredis

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
)

// port is a TCP port of 127.0.0.1 for a server, now and after each new start.
type port struct {
	number int
	claim  net.PacketConn
}

// newPort finds a port without a listener, and keeps it until close. It is below the kernel's range
// for outgoing connections: one of these may take any port in the range while its server is down,
// and then this cannot come back. While the port is kept no other process with this package gets
// it, however late the server listens: two servers with one promised port would both seem to answer
// there. The claim is the UDP port of the same number: it is not needed otherwise, and ends with
// the process.
func newPort() (port, error) {
	var errs []error
	for range 100 {
		number := 10000 + rand.IntN(22000)
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(number))
		claim, err := net.ListenPacket("udp", address)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		ln, err := net.Listen("tcp", address)
		if err == nil {
			return port{number, claim}, ln.Close()
		}
		errs = append(errs, err, claim.Close())
	}
	return port{}, errors.Join(errs...)
}

func (p port) String() string { return strconv.Itoa(p.number) }

// addr is the port's address.
func (p port) addr() string { return net.JoinHostPort("127.0.0.1", p.String()) }

// close lets others have it.
func (p port) close() error {
	if p.claim == nil {
		return nil
	}
	return p.claim.Close()
}
