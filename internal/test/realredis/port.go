package realredis

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
)

// port is a TCP port of 127.0.0.1 that a server may listen on, now and whenever
// it is started anew.
type port struct {
	number int
	claim  net.PacketConn
}

// newPort finds one without a listener, and keeps it until close. It is
// below those that the kernel takes for outgoing connections: one of these may
// have any port above while a server that had it is down, and then it cannot
// come back. While it is kept no other process that uses this package gets it,
// though it be long until the server listens: two servers that were promised
// the same port would both seem to answer there. The claim is the UDP port of
// that number, which is not needed and which ends with the process.
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

// addr is where the port is.
func (p port) addr() string { return net.JoinHostPort("127.0.0.1", p.String()) }

// close lets others have it.
func (p port) close() error {
	if p.claim == nil {
		return nil
	}
	return p.claim.Close()
}
