package drivers

import (
	"context"
	"errors"
	"time"

	"github.com/redlock-go/redlock/bench/harness"
	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/resp"
)

// Exchange is no lock: it asks all nodes for a SET and hears a majority, where a lock client acquires, and once more where
// that releases. So a pair is two exchanges.
type Exchange struct {
	name string
	open func(ctx context.Context, cfg harness.Config) (harness.Session, error)
}

// Exchanges are those by package conn, by it in batches, and by clients of one node each with a goroutine for a request.
var Exchanges = []Exchange{{"exchange-conn", byConn}, {"exchange-use", byUse}, {"exchange-goredis", byGoRedis}, {"exchange-redigo", byRedigo}}

func (d Exchange) Name() string { return d.name }

func (d Exchange) Weaker() string { return "no lock" }

func (d Exchange) Open(ctx context.Context, cfg harness.Config) (harness.Session, error) {
	if cfg.Scenario != harness.Uncontended {
		return nil, harness.Unsupported("is no lock")
	}
	return d.open(ctx, cfg)
}

// question asks all nodes, or one.
type question = func(ctx context.Context, key string) error

type exchangeWorker struct {
	ask question
	key string
}

func (w *exchangeWorker) Acquire(ctx context.Context, key string) (bool, error) {
	w.key = key
	err := w.ask(ctx, key)
	return err == nil, err
}

func (w *exchangeWorker) Release(ctx context.Context) error { return w.ask(ctx, w.key) }

func openNodes(ctx context.Context, addrs []string) (*conn.Nodes, error) {
	addresses, err := conn.ParseAddresses(addrs)
	if err != nil {
		return nil, err
	}
	nodes, err := conn.Open(conn.Config{Addresses: addresses})
	if err != nil {
		return nil, err
	}
	return nodes, nodes.Await(ctx)
}

func byConn(ctx context.Context, cfg harness.Config) (harness.Session, error) {
	nodes, err := openNodes(ctx, cfg.Nodes)
	if err != nil {
		return nil, err
	}
	return &session{closers{well(nodes.Close)}, func() harness.Worker {
		var command []byte // of the worker's first key, and never changed: a late node may still be sent it
		return &exchangeWorker{ask: func(ctx context.Context, key string) (err error) {
			if command == nil {
				command = resp.AppendCommand(nil, "SET", key, "value", "PX", "10000")
			}
			heard := 0
			for _, reply := range nodes.Do(ctx, command) {
				if reply.Err != nil {
					err = reply.Err
				} else if heard++; heard == len(cfg.Nodes)/2+1 {
					return nil
				}
			}
			return err
		}}
	}}, nil
}

// batches is a [harness.Runner]: one caller, whose every batch has many commands.
type batches struct {
	conn.Batch
	nodes *conn.Nodes
	ended chan struct{}
}

func (b *batches) Reply(int, int, *resp.Value) error { return nil }
func (b *batches) Fail(int, int, error)              {}
func (b *batches) Done()                             { b.ended <- struct{}{} }
func (b *batches) Close() error                      { b.nodes.Close(); return nil }

const commandsOfBatch = 64

func byUse(ctx context.Context, cfg harness.Config) (harness.Session, error) {
	nodes, err := openNodes(ctx, cfg.Nodes)
	if err != nil {
		return nil, err
	}
	b := &batches{nodes: nodes, ended: make(chan struct{}, 1)}
	b.Owner = b
	for range commandsOfBatch {
		b.Append("SET", cfg.Keys[0][0], "value", "PX", "10000")
	}
	return b, nil
}

// Run implements [harness.Runner].
func (b *batches) Run(_ context.Context, probe *harness.Probe) error {
	for probe.Running() {
		start := time.Now()
		b.nodes.Use(func(f *conn.Fleet) { f.Send(&b.Batch) })
		<-b.ended
		probe.Pairs(commandsOfBatch/2, time.Since(start))
	}
	return nil
}

// byMany asks each node by a goroutine, by what open returns for it.
func byMany(cfg harness.Config, open func(addr string) (question, func() error, error)) (harness.Session, error) {
	all, opened, err := openAll(cfg.Nodes, open)
	ask := func(ctx context.Context, key string) (err error) {
		answers := make(chan error, len(all))
		for _, ask := range all {
			go func() { answers <- ask(ctx, key) }()
		}
		for heard, left := 0, len(all); left > 0; left-- {
			if e := <-answers; e != nil {
				err = e
			} else if heard++; heard == len(all)/2+1 {
				return nil
			}
		}
		return err
	}
	return &session{opened, func() harness.Worker { return &exchangeWorker{ask: ask} }}, err
}

func byGoRedis(ctx context.Context, cfg harness.Config) (harness.Session, error) {
	return byMany(cfg, func(addr string) (question, func() error, error) {
		client, err := dialGoRedis(ctx, addr, withSpare(cfg.Concurrency))
		if err != nil {
			return nil, nil, err
		}
		return func(ctx context.Context, key string) error {
			return client.Set(ctx, key, "value", 10*time.Second).Err()
		}, client.Close, nil
	})
}

func byRedigo(ctx context.Context, cfg harness.Config) (harness.Session, error) {
	return byMany(cfg, func(addr string) (question, func() error, error) {
		pool, err := dialRedigo(ctx, addr, withSpare(cfg.Concurrency))
		if err != nil {
			return nil, nil, err
		}
		return func(_ context.Context, key string) error {
			c := pool.Get()
			_, err := c.Do("SET", key, "value", "PX", "10000")
			return errors.Join(err, c.Close())
		}, pool.Close, nil
	})
}
