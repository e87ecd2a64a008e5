//go:build linux

package main

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redlock-go/redlock/internal/test/realredis"
)

// fault does one thing to the masters or to a process, and undoes it.
func (t *trial) fault() error {
	some := make([]*realredis.Server, 0, masters)
	for _, i := range rand.Perm(masters)[:1+rand.IntN(3)] { // three are a majority
		some = append(some, t.fleet.Servers[i])
	}
	name := fmt.Sprint(" of ", len(some))
	switch rand.IntN(8) {
	case 0, 1:
		t.faults["SIGKILL"+name]++
		for _, s := range some {
			if err := s.Kill(); err != nil {
				return err
			}
		}
		sleep(0, ttl)
		for _, s := range some {
			if s.Restart() == nil {
				continue
			}
			if err := s.Restart(); err != nil { // the first may have been too slow, where all stood still meanwhile
				return err
			}
		}
	case 2, 3:
		t.faults["SIGSTOP"+name]++
		for _, s := range some {
			if err := s.Stop(); err != nil {
				return err
			}
		}
		sleep(0, 2*ttl)
		for _, s := range some {
			if err := s.Cont(); err != nil {
				return err
			}
		}
	case 4, 5:
		t.faults["CLIENT KILL"+name]++
		for _, s := range some {
			if _, err := ask(s.Addr(), "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"); err != nil {
				return err
			}
		}
	case 6:
		t.faults["SIGSTOP of a process"]++
		u := t.users[rand.IntN(len(t.users))]
		_ = u.Signal(syscall.SIGSTOP)
		sleep(0, 2*ttl)
		_ = u.Signal(syscall.SIGCONT)
	default:
		t.faults["SIGKILL of a process"]++
		i := rand.IntN(len(t.users))
		_ = t.users[i].Signal(syscall.SIGKILL)
		t.users[i].end()
		u, err := startUser(t.users[i].kind, t.nodes(), t.judge)
		if err != nil {
			return err
		}
		t.users[i] = u
	}
	return nil
}

// sleep sleeps for a random time.
func sleep(least, most time.Duration) { time.Sleep(least + rand.N(most-least)) }

// ask gives a master an order, and returns the lines of its reply.
func ask(address string, words ...string) (lines []string, err error) {
	c, err := net.DialTimeout("tcp", address, 10*time.Second)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := fmt.Fprintf(c, "%s\r\n", strings.Join(words, " ")); err != nil {
		return nil, err
	}
	in := bufio.NewScanner(c)
	for n := 1; n > 0 && in.Scan(); n-- {
		switch line := in.Text(); line[0] {
		case '*':
			more, err := strconv.Atoi(line[1:])
			if err != nil {
				return nil, err
			}
			n += more
		case '$':
			n++
		case '-':
			return nil, fmt.Errorf("%s: %s", address, line)
		default:
			lines = append(lines, line)
		}
	}
	return lines, in.Err()
}
