// Command own measures a lock client of your own beside redlock: an example to copy. This one asks a majority by package conn,
// waits for nothing, and takes no account of time. See "Your own driver" in ../README.md.
package main

import (
	"context"
	"crypto/rand"
	"strconv"
	"time"

	"github.com/redlock-go/redlock/bench/harness"
	"github.com/redlock-go/redlock/bench/ours"
	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/quorum"
	"github.com/redlock-go/redlock/resp"
)

func main() {
	program := harness.Program{Drivers: []harness.Driver{mine{}, ours.Driver{}}, Chosen: []string{"mine", "redlock"}, Source: "./bench/own"}
	program.Execute()
}

// mine is the driver. Open is called for each cell, and is not counted.
type mine struct{}

func (mine) Name() string { return "mine" }

func (mine) Open(ctx context.Context, cfg harness.Config) (harness.Session, error) {
	addresses, err := conn.ParseAddresses(cfg.Nodes)
	if err != nil {
		return nil, err
	}
	nodes, err := conn.Open(conn.Config{Addresses: addresses})
	if err != nil {
		return nil, err
	}
	return &session{nodes, quorum.Majority(quorum.First(len(addresses))), cfg.TTL}, nodes.Await(ctx)
}

// session is a client, and makes a worker for each goroutine.
type session struct {
	nodes    *conn.Nodes
	majority *quorum.Config
	ttl      time.Duration
}

func (s *session) Close() error                    { s.nodes.Close(); return nil }
func (s *session) Worker() (harness.Worker, error) { return &worker{session: s}, nil }

// worker holds one lock at a time. Its key is that of the last Acquire.
type worker struct {
	*session
	key, token string
}

func (w *worker) Acquire(ctx context.Context, key string) (bool, error) {
	w.key, w.token = key, rand.Text()
	won := w.ask(ctx, "SET", key, w.token, "NX", "PX", strconv.FormatInt(w.ttl.Milliseconds(), 10))
	if !won {
		_ = w.Release(ctx)
	}
	return won, nil
}

func (w *worker) Release(ctx context.Context) error {
	const script = `if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) else return 0 end`
	w.ask(ctx, "EVAL", script, "1", w.key, w.token)
	return nil
}

// ask reports whether a majority has done as asked.
func (w *worker) ask(ctx context.Context, command ...string) bool {
	var votes quorum.Tally
	votes.Reset(w.majority)
	for node, reply := range w.nodes.Do(ctx, resp.AppendCommand(nil, command...)) {
		vote := quorum.Failed
		if reply.Err == nil {
			vote = quorum.Denied
			if reply.Value.IsOK() || reply.Value.Int == 1 {
				vote = quorum.Granted
			}
		}
		if votes.Record(node, vote) != quorum.Pending {
			break
		}
	}
	return votes.Verdict() == quorum.Won
}
