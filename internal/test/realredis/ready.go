package realredis

import (
	"bytes"
	"fmt"
	"net"
	"strings"
	"time"
)

// startTimeout bounds a server's time to its first answer.
const startTimeout = 20 * time.Second

// await returns once the server gives PING a good enough answer.
func (s *Server) await(goodEnough func(reply string) bool) error {
	for deadline := time.Now().Add(startTimeout); ; {
		isLate := time.Now().After(deadline) // before the last look: this process may have been stopped
		reply, err := ping(s.Addr())
		if err == nil && goodEnough(reply) {
			return nil
		}
		if isLate {
			return fmt.Errorf("realredis: %s does not answer: %q, %w", s.command[0], reply, err)
		}
		select {
		case <-s.exited:
			return fmt.Errorf("realredis: %s ended: %v", s.command[0], s.cmd.ProcessState)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// serves reports whether an answer to PING is that of a running server. Asking for a password is,
// loading is not.
func serves(reply string) bool {
	return strings.HasPrefix(reply, "+") || strings.HasPrefix(reply, "-NOAUTH")
}

// answers takes any answer for one.
func answers(reply string) bool { return reply != "" }

// ping asks a server whether it serves, and returns its answer.
func ping(addr string) (string, error) {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return "", err
	}
	defer func() { _ = c.Close() }()
	if err := c.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return "", err
	}
	if _, err := c.Write([]byte("PING\r\n")); err != nil {
		return "", err
	}
	reply := make([]byte, 256)
	n, err := c.Read(reply)
	return string(bytes.TrimSpace(reply[:n])), err
}
