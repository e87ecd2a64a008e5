package harness

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redlock-go/redlock/bench/result"
)

// Crowd is processes of a contended cell whose workers do the same.
type crowd struct {
	Processes, Workers int // workers of each process
	Share, Poll, Crash bool
	Vary               bool          // work takes from half of Hold to all of it
	Hold               time.Duration // with Crash the TTL
	Keys               int           // workers have these in turns; 0: all choose
	Driver             string        // "" is that of the row
}

// Sharer is a driver that looks at [Config.Share]. It alone is measured with readers.
type Sharer interface {
	Driver
	Shares()
}

// Divided is a driver whose keys can each be held so many times at once. Its workers are [Numbered].
type Divided interface {
	Driver
	Permits() int
}

// Numbered is a worker that knows which of the permits of a key it has, from 0.
type Numbered interface{ Permit() int }

// beside divides crowds that are at work together.
const beside = "+"

// pollLeast and pollMore are a pause between two tries of one who polls: the first, and by chance up to the second more.
const pollLeast, pollMore = 50 * time.Millisecond, 200 * time.Millisecond

// crowdsOf reads crowds that are at work together: 2x64:read:20ms+1x1:write:1ms.
func crowdsOf(text string) (all []crowd, err error) {
	for one := range strings.SplitSeq(text, beside) {
		c := crowd{Vary: true}
		words := append(strings.Split(one, ":"), "1")
		if len(words) < 4 {
			return nil, fmt.Errorf("%q: want processes x workers : what : work", one)
		}
		var want string
		switch want, c.Driver, _ = strings.Cut(words[1], "@"); want {
		case "read":
			c.Share = true
		case "crash":
			c.Share, c.Crash = true, true
		case "write":
		case "poll":
			c.Poll = true
		default:
			return nil, fmt.Errorf("%q: read, write, poll or crash", one)
		}
		_, err = fmt.Sscanf(words[0]+" "+words[3], "%dx%d %d", &c.Processes, &c.Workers, &c.Keys)
		if err == nil {
			c.Hold, err = time.ParseDuration(words[2])
		}
		if err == nil && (c.Processes < 1 || c.Processes > maxProcesses || c.Workers < 1 || c.Workers > MaxConcurrency || c.Keys < 1 || c.Keys > maxShared) {
			err = fmt.Errorf("%q is too few, or too many", one)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// withCrowds sets crowds that can be read.
func withCrowds(c *result.Cell, text string) {
	c.Crowd, c.Processes, c.Concurrency, c.Keys = text, 0, 0, 0
	all, _ := crowdsOf(text)
	for _, crowd := range all {
		c.Processes += crowd.Processes
		c.Concurrency, c.Keys = max(c.Concurrency, crowd.Workers), max(c.Keys, crowd.Keys)
	}
}

// ofCrowd is the cell of one of its crowds.
func ofCrowd(c result.Cell, i int) result.Cell {
	if c.Crowd == "" {
		return c
	}
	texts := strings.Split(c.Crowd, beside)
	crowd, _ := crowdsOf(texts[i])
	c.Crowd, c.Beside = texts[i], strings.Join(slices.Concat(texts[:i], texts[i+1:]), beside)
	c.Processes, c.Concurrency, c.Keys = crowd[0].Processes, crowd[0].Workers, crowd[0].Keys
	return c
}

// crowdText takes what crowdsOf can read.
func crowdText(text string) (string, error) {
	_, err := crowdsOf(text)
	return text, err
}

// ttlOf is the TTL of a crowd's locks.
func (c crowd) ttlOf(usual time.Duration) time.Duration {
	if c.Crash {
		return c.Hold
	}
	return cmp.Or(usual, ttl)
}
