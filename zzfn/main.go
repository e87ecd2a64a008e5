package main

import (
	"context"
	"fmt"
	"os"
	"runtime/coverage"
	"time"

	"github.com/redlock-go/redlock"
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}
func main() {
	addrs := []string{"127.0.0.1:7001", "127.0.0.1:7002", "127.0.0.1:7003", "127.0.0.1:7004", "127.0.0.1:7005"}
	ctx := context.Background()
	a, err := redlock.New(redlock.Config{Nodes: addrs})
	must(err)
	b, err := redlock.New(redlock.Config{Nodes: addrs})
	must(err)
	out := os.Args[1]
	var l redlock.Lock
	measure := func(name string, before, f, after func()) {
		for i := 0; i < 3; i++ {
			before()
			f()
			after()
			time.Sleep(1500 * time.Millisecond)
			d := fmt.Sprintf("%s/%s.%d", out, name, i)
			must(os.MkdirAll(d, 0o755))
			before()
			must(coverage.ClearCounters())
			f()
			must(coverage.WriteMetaDir(d))
			must(coverage.WriteCountersDir(d))
			after()
			time.Sleep(300 * time.Millisecond)
		}
	}
	none := func() {}
	measure("try", none, func() { l, err = a.TryAcquire(ctx, "fn:try", 5*time.Second); must(err) }, func() { must(l.Release(ctx)) })
	var hold redlock.Lock
	measure("contended", func() { hold, err = a.Acquire(ctx, "fn:cont", 5*time.Second); must(err) },
		func() {
			time.AfterFunc(100*time.Millisecond, func() { must(hold.Release(ctx)) })
			l, err = b.Acquire(ctx, "fn:cont", 5*time.Second)
			must(err)
		}, func() { must(l.Release(ctx)) })
	measure("do", none, func() {
		must(a.Do(ctx, "fn:do", 300*time.Millisecond, func(ctx context.Context) error { time.Sleep(250 * time.Millisecond); return nil }))
	}, none)
	done := make(chan struct{}, 1)
	op := &redlock.Op{Kind: redlock.OpAcquire, Key: []byte("fn:sub"), TTL: 5 * time.Second, Done: func(*redlock.Op) { done <- struct{}{} }}
	measure("submit", none, func() {
		op.Kind = redlock.OpAcquire
		must(a.Submit(op))
		<-done
	}, func() { op.Kind = redlock.OpRelease; must(a.Submit(op)); <-done })
}
