package proxy

import (
	"bytes"
	"fmt"
	"syscall"
	"time"
)

// orders carries out what the parent writes to stdin, one order a line.
type orders struct {
	loop  *loop
	nodes []*node
	line  []byte
}

// read is the handler of stdin. Its end is the end of the loop.
func (o *orders) read() error {
	n, err := syscall.Read(syscall.Stdin, o.loop.buf)
	if err != nil {
		return fmt.Errorf("stdin: %w", err)
	}
	if n == 0 {
		o.loop.ended = true
		return nil
	}
	o.line = append(o.line, o.loop.buf[:n]...)
	for {
		line, rest, whole := bytes.Cut(o.line, []byte("\n"))
		if !whole {
			return nil
		}
		if err := o.obey(string(line)); err != nil {
			fmt.Println(err)
		} else {
			fmt.Println(done)
		}
		o.line = append(o.line[:0], rest...)
	}
}

// obey carries out one order.
func (o *orders) obey(line string) error {
	var (
		what          string
		i             int
		delay, jitter int64
	)
	if n, _ := fmt.Sscan(line, &what, &i, &delay, &jitter); n < 2 || i < 0 || i >= len(o.nodes) {
		return fmt.Errorf("cannot read %q", line)
	}
	node := o.nodes[i]
	switch what {
	case "delay":
		node.delay, node.jitter = time.Duration(delay), time.Duration(jitter)
	case "hang":
		return node.become(hanging)
	case "refuse":
		return node.become(refusing)
	case "blackhole":
		return node.become(swallowing)
	case "pass":
		return node.become(passing)
	default:
		return fmt.Errorf("no such order: %q", line)
	}
	return nil
}
