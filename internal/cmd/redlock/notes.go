package main

import (
	"fmt"
	"io"
	"time"
)

// notes are lines for the user of a run. A goroutine writes them in order, so a terminal that stands still (^S), or a
// pipe without a reader, delays no decision. When too many lines wait, further ones are dropped.
type notes struct {
	out     io.Writer
	lines   chan string
	written chan struct{} // closed after the last
}

func (n *notes) say(line string) {
	if n.lines == nil {
		n.lines, n.written = make(chan string, 64), make(chan struct{})
		go func() {
			defer close(n.written)
			for line := range n.lines {
				fmt.Fprintln(n.out, "redlock: "+line)
			}
		}()
	}
	select {
	case n.lines <- line:
	default:
	}
}

// close waits for the lines, for a moment.
func (n *notes) close() {
	if n.lines != nil {
		close(n.lines)
		select {
		case <-n.written:
		case <-time.After(time.Second):
		}
	}
}
