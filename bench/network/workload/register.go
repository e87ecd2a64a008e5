package workload

import (
	"bufio"
	"fmt"
	"net"
	"sync"
)

// Register is a resource that locks protect: it refuses a token below the largest that it has seen for a key. It is a socket in
// the file system, which no fault touches.
type Register struct {
	Path string
	mu   sync.Mutex
	conn net.Conn
	in   *bufio.Reader
}

// Write shows a token. It returns false if the register refuses it.
func (r *Register) Write(key string, token uint64) (accepted bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.conn == nil {
		if r.conn, err = net.Dial("unix", r.Path); err != nil {
			return false, err
		}
		r.in = bufio.NewReader(r.conn)
	}
	if _, err := fmt.Fprintf(r.conn, "%s %d\n", key, token); err != nil {
		return false, err
	}
	line, err := r.in.ReadString('\n')
	return line == "accepted\n", err
}

// ServeRegister answers at a socket until it is closed.
func ServeRegister(path string) (net.Listener, error) {
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	largest := map[string]uint64{}
	serve := func(c net.Conn) {
		defer c.Close()
		for s := bufio.NewScanner(c); s.Scan(); {
			var key string
			var token uint64
			if n, _ := fmt.Sscan(s.Text(), &key, &token); n != 2 {
				return
			}
			mu.Lock()
			answer := "refused"
			if token >= largest[key] {
				largest[key], answer = token, "accepted"
			}
			mu.Unlock()
			if _, err := fmt.Fprintln(c, answer); err != nil {
				return
			}
		}
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go serve(c)
		}
	}()
	return l, nil
}
