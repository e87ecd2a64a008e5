package ours

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/bench/child"
	"github.com/redlock-go/redlock/bench/harness"
	"github.com/redlock-go/redlock/internal/server/frontend"
	"github.com/redlock-go/redlock/resp"
)

// Served is clients of redlock serve, of which each process has one beside it: SET NX PX, and a script that releases. The
// CPU is that of the clients alone.
type Served struct{}

// frontEnv makes a copy of this binary a front end, and names the masters.
const frontEnv = "REDLOCK_BENCH_FRONT"

// ServeIfFront is the front end, in a process that was started for that.
func ServeIfFront() {
	child.Serve(frontEnv, func(nodes string) error {
		client, err := redlock.New(redlock.Config{Nodes: strings.Split(nodes, ",")})
		if err != nil {
			return err
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		front := frontend.New(frontend.Config{Client: client, MaxTTL: redlock.MaxTTL})
		fmt.Println(l.Addr())
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin) // until the parent ends
			front.Stop(context.Background())
		}()
		return errors.Join(front.Serve(l), client.Close())
	})
}

func (Served) Name() string { return "redlock-serve" }

func (Served) Open(_ context.Context, cfg harness.Config) (harness.Session, error) {
	p, addrs, err := child.Start(frontEnv, strings.Join(cfg.Nodes, ","), 1)
	if err != nil {
		return nil, err
	}
	return &front{Process: p, addr: addrs[0], cfg: cfg}, nil
}

// front is a [harness.Pool].
type front struct {
	*child.Process
	addr string
	cfg  harness.Config
}

func (f *front) Worker() (harness.Worker, error) {
	c, err := net.Dial("tcp", f.addr)
	if err != nil {
		return nil, err
	}
	w := &connection{front: f, Conn: c, in: bufio.NewReader(c), ttl: strconv.FormatInt(f.cfg.TTL.Milliseconds(), 10), token: c.LocalAddr().String()}
	if _, err = w.ask("SCRIPT", "LOAD", release); err == nil {
		w.script, err = w.in.ReadString('\n') // its name
		w.script = strings.TrimSpace(w.script)
	}
	return w, err
}

// release is that of most lock clients.
const release = `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) else return 0 end`

// connection is a client with one command at a time.
type connection struct {
	*front
	net.Conn
	in                      *bufio.Reader
	ttl, token, key, script string
	request                 []byte
}

// poll is between two tries of one who waits.
const poll = 200 * time.Microsecond

func (c *connection) Acquire(_ context.Context, key string) (bool, error) {
	c.key = key
	reply, err := c.ask("SET", key, c.token, "NX", "PX", c.ttl)
	if err == nil && reply != "+OK" && c.cfg.Scenario == harness.Contended {
		time.Sleep(poll)
	}
	return err == nil && reply == "+OK", err
}

func (c *connection) Release(context.Context) error {
	reply, err := c.ask("EVALSHA", c.script, "1", c.key, c.token)
	if err == nil && reply != ":1" {
		err = fmt.Errorf("a release in time: %s", reply)
	}
	return err
}

// Leave is for [harness.Leaver].
func (c *connection) Leave() { _ = c.Conn.Close() }

// ask returns the first line of the reply.
func (c *connection) ask(words ...string) (string, error) {
	c.request = resp.AppendCommand(c.request[:0], words...)
	if _, err := c.Write(c.request); err != nil {
		return "", err
	}
	line, err := c.in.ReadSlice('\n')
	if err == nil && line[0] == '-' {
		err = errors.New(string(line))
	}
	return string(line[:max(len(line)-2, 0)]), err
}
