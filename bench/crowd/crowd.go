// Package crowd measures how long callers wait who share a lock, and those beside them who want it for themselves, by one
// library or by several in turns.
package crowd

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Want is what a caller asks for.
type Want uint8

const (
	Read  Want = iota // a shared lock
	Write             // an exclusive one
	Poll              // an exclusive one, by tries after pauses, as by clients that stand in no queue
)

// Library is a client of some masters, in one process.
type Library interface {
	Caller() Caller
	Close() error
}

// Caller is one goroutine's use of a library. It has one lock at a time.
type Caller interface {
	// Acquire waits for a lock until ctx ends.
	Acquire(ctx context.Context, key string, ttl time.Duration, want Want) error
	Release(ctx context.Context) error
}

// Open connects a library.
type Open func(ctx context.Context, nodes []string) (Library, error)

// crowd is callers that do the same, in one process or several.
type crowd struct {
	processes, callers int
	want               Want
	crash              bool // each acquires once, and does not release
	hold               time.Duration
	keys               int
}

// parse reads a crowd as [Main] has it.
func parse(text string) (c crowd, err error) {
	words := append(strings.Split(text, ":"), "1")
	if len(words) < 4 {
		return c, fmt.Errorf("%q: want processes x callers : what : hold", text)
	}
	switch words[1] {
	case "read":
	case "crash":
		c.crash = true
	case "write":
		c.want = Write
	case "poll":
		c.want = Poll
	default:
		return c, fmt.Errorf("%q: read, write, poll or crash", text)
	}
	_, err = fmt.Sscanf(words[0]+" "+words[3], "%dx%d %d", &c.processes, &c.callers, &c.keys)
	if err == nil {
		c.hold, err = time.ParseDuration(words[2])
	}
	return c, err
}
